package tune_test

import (
	"fmt"
	"log"
	"os"
	"path/filepath"
	"time"

	"volley/sim"
	"volley/tune"
)

// What one run has measured, later ones find. volley tune measures, and Measure does so in a program.
func ExampleFind() {
	dir, err := os.MkdirTemp("", "tune")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "tune.json")
	os.Setenv(tune.Variable, file)
	defer os.Unsetenv(tune.Variable)

	network, err := sim.ParseNetwork("10gbit/20us")
	if err != nil {
		log.Fatal(err)
	}
	at := tune.Platform{Transport: "tcp", Hosts: []string{"a", "b"}, Ranks: 2}
	measured := &tune.Result{Platform: at, Date: time.Now(), Network: network, Points: []tune.Point{{Bytes: 1 << 20, Messages: 1, Seconds: 0.001}}}
	if err := measured.Save(file); err != nil {
		log.Fatal(err)
	}
	found, err := tune.Find(at)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(found.Platform, found.Network)
	// Output: tcp, 2 ranks on 2 hosts L 20µs, o 2µs, G 0.8466 ns/B
}
