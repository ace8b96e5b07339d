package verbs

import (
	"context"
	"errors"
	"net"
	"os"
	"runtime"
	"runtime/debug"
	"time"

	"github.com/cli/browser"
	"github.com/spf13/cobra"

	"volley/internal/cli/session"
	"volley/internal/printable"
	"volley/internal/selection"
	"volley/lab/web"
)

type exploreOptions struct {
	addr   string
	open   bool
	public bool
}

func newExplore() *cobra.Command {
	o := &exploreOptions{}
	cmd := &cobra.Command{
		Use:   "explore [flags]",
		Short: "See schedules, costs and runs in a browser",
		Args:  session.NoArguments,
		Long: `Show schedules, costs and runs in a browser.

The page is in this binary and needs no network. It draws up to 81 processors
message by message, and up to 1,024 in heat maps. It answers only whoever opens
the address that it prints, which has a random token in it. It listens on this
machine only, unless --public is given. Ctrl-C ends it.`,
		Example: `  volley-lab explore
  volley-lab explore --addr 127.0.0.1:9000 --open=false`,
		RunE: func(cmd *cobra.Command, _ []string) error { return runExplore(cmd, o) },
	}
	f := cmd.Flags()
	f.StringVar(&o.addr, "addr", "127.0.0.1:8080", "`ADDRESS` to serve on; port 0 takes a free one")
	f.BoolVar(&o.open, "open", true, "open a browser, where there is one")
	f.BoolVar(&o.public, "public", false, "allow an --addr that other machines reach")
	return cmd
}

func runExplore(cmd *cobra.Command, o *exploreOptions) error {
	listener, err := net.Listen("tcp", o.addr)
	if err != nil {
		if op := new(net.OpError); errors.As(err, &op) {
			err = op.Err // without the address
		}
		return selection.Markf("addr", "--addr %s: %w: choose another, such as 127.0.0.1:0 for any free port", o.addr, err)
	}
	if tcp, ok := listener.Addr().(*net.TCPAddr); !ok || !tcp.IP.IsLoopback() {
		if !o.public {
			listener.Close()
			return selection.Markf("addr", "--addr %s: other machines would reach it, and whoever has the token can compute here: take 127.0.0.1 or [::1], or add --public", o.addr)
		}
		printable.Fprintf(cmd.ErrOrStderr(), "warning: other machines reach %s: whoever has the token, which goes over the network unencrypted, can compute on this machine's cores and with %d MiB of its memory; files of this machine are not read\n",
			listener.Addr(), web.Budget>>20)
	}
	token := web.NewToken()
	server := web.NewServer(token)
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(web.Budget + web.Budget/2) // collect garbage sooner near the budget
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	address := "http://" + reachable(listener.Addr().String()) + "/?token=" + token
	if err := printable.Fprintf(cmd.OutOrStdout(), "%s\n", address); err != nil {
		server.Close()
		return err
	}
	if o.open && hasBrowser() {
		_ = browser.OpenURL(address) // where it cannot, the address is printed
	}
	select {
	case err := <-served:
		return err
	case <-cmd.Context().Done(): // the way to end it, and no failure
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if err := server.Shutdown(ctx); err != nil {
		return server.Close() // of those who are still being answered
	}
	return nil
}

// reachable returns an address by which this machine reaches a listener that may listen on all of its addresses.
func reachable(address string) string {
	host, port, err := net.SplitHostPort(address)
	if ip := net.ParseIP(host); err == nil && ip != nil && ip.IsUnspecified() {
		return net.JoinHostPort("localhost", port)
	}
	return address
}

func hasBrowser() bool {
	switch runtime.GOOS {
	case "darwin", "windows":
		return true
	}
	return os.Getenv("DISPLAY") != "" || os.Getenv("WAYLAND_DISPLAY") != ""
}
