module volley/internal/mutation

go 1.26.8
