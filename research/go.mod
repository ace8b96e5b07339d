module volley/research

go 1.26.8

require volley v0.0.0

replace volley => ../
