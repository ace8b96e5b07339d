//go:build linux

package deploy

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// settings returns the assignments of a unit, or of a file of its environment.
func settings(t *testing.T, path string) map[string]string {
	t.Helper()
	s := map[string]string{}
	for line := range strings.Lines(read(t, path)) {
		if key, value, ok := strings.Cut(strings.TrimSpace(line), "="); ok && !strings.HasPrefix(line, "#") {
			s[key] = value
		}
	}
	return s
}

// checkMetrics reads a file of metrics as the node exporter does.
func checkMetrics(t *testing.T, path string, want map[string]float64) {
	t.Helper()
	f, err := os.Open(path)
	must(t, err)
	defer f.Close()
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(f)
	must(t, err)
	for name, x := range families {
		if x.GetHelp() == "" || x.GetType() != dto.MetricType_GAUGE || len(x.Metric) != 1 || x.Metric[0].Label[0].GetName() != "verb" {
			t.Errorf("%s: %s: %v", path, name, x)
		}
	}
	for name, v := range want {
		if x := families["volley_"+name]; x == nil || x.Metric[0].GetGauge().GetValue() != v {
			t.Errorf("%s: %s is %v, want %v", path, name, x, v)
		}
	}
	if info, err := f.Stat(); err != nil || info.Mode().Perm() != 0o644 {
		t.Errorf("%s: %v, %v: the exporter is another user", path, info, err)
	}
}

// TestSystemd has systemd read the units, where it is installed, and runs what they start.
func TestSystemd(t *testing.T) {
	bin, dir := binary(t), t.TempDir()
	list, err := filepath.Glob("systemd/volley*")
	if err != nil || len(list) != 5 {
		t.Fatal(list, err)
	}
	units := []string{"verify", "--man=no"}
	for _, unit := range list {
		text := strings.ReplaceAll(read(t, unit), "ExecStart=volley", "ExecStart="+filepath.Join(bin, "volley"))
		to := filepath.Join(dir, strings.Replace(filepath.Base(unit), "@", "@volley-verify", 1))
		write(t, to, text, 0o644)
		units = append(units, to)
	}
	if analyze, err := exec.LookPath("systemd-analyze"); err == nil {
		if out, err := exec.CommandContext(limited(t), analyze, units...).CombinedOutput(); err != nil || len(out) > 0 {
			t.Errorf("systemd-analyze: %v: %s", err, out)
		}
	}
	conf, dirs := settings(t, "systemd/group.conf"), nodes(t, 3)
	run := func(unit string, want int) {
		t.Helper()
		of := settings(t, "systemd/"+unit)
		words := strings.Fields(of["ExecStart"])
		if of["TimeoutStartSec"] == "" || !slices.Contains(words, "-q") {
			t.Errorf("%s: a run that hangs keeps the timer for ever, or one that is well fills the log: %v", unit, of)
		}
		var args []string
		for _, word := range words[1:] {
			if name, ok := strings.CutPrefix(word, "$"); ok {
				args = append(args, strings.Fields(conf[name])...)
			} else {
				args = append(args, word)
			}
		}
		checkFlags(t, bin, unit, args)
		for i, host := range []string{"a", "b", "c"} {
			for j := range args {
				args[j] = strings.Replace(args[j], host+":/data", dirs[i], 1)
				args[j] = strings.Replace(args[j], "/var/lib/volley", dir, 1)
			}
		}
		if codes, text := together(t, []*exec.Cmd{exec.CommandContext(limited(t), filepath.Join(bin, "volley"), args...)}); codes[0] != want {
			t.Fatalf("%s: exit code %d, want %d: %s", unit, codes[0], want, text)
		}
	}
	run("volley-protect.service", exitOK)
	run("volley-verify.service", exitOK)
	checkMetrics(t, filepath.Join(dir, "protect.prom"), map[string]float64{"success": 1, "nodes": 3, "generation": 1})
	checkMetrics(t, filepath.Join(dir, "verify.prom"), map[string]float64{"success": 1, "may_lose_nodes": 1})
	must(t, os.Remove(filepath.Join(dirs[1], "packet")))
	run("volley-verify.service", exitWhole)
	checkMetrics(t, filepath.Join(dir, "verify.prom"), map[string]float64{"success": 0, "exit_code": exitWhole, "damaged_nodes": 1, "lost_nodes": 0})

	// The operator is told by a command of several words.
	write(t, filepath.Join(bin, "systemctl"), "#!/bin/sh\necho \"$@\"\nexit 3\n", 0o755)
	words := strings.SplitN(settings(t, "systemd/volley-failed@.service")["ExecStart"], "'", 3)
	script := strings.ReplaceAll(words[1], "$$", "$")
	tell := exec.CommandContext(limited(t), "/bin/sh", append([]string{"-c", script}, strings.Fields(strings.ReplaceAll(words[2], "%i", "volley-verify"))...)...)
	tell.Env = []string{"PATH=" + bin + ":/usr/bin:/bin", "TELL=sed s/^/told:/"}
	if out, err := tell.CombinedOutput(); err != nil || !strings.HasPrefix(string(out), "told:status") || !strings.Contains(string(out), "volley-verify.service") {
		t.Errorf("%v: %s", err, out)
	}
}

// TestSlurm checks the flags of the scripts, and that they want a directory. TestSlurmCluster runs them.
func TestSlurm(t *testing.T) {
	bin := binary(t)
	for _, script := range []string{"protect.sbatch", "recover.sbatch"} {
		for line := range strings.Lines(read(t, "slurm/"+script)) {
			if _, command, ok := strings.Cut(line, "srun volley "); ok {
				checkFlags(t, bin, script, strings.Fields(command))
			}
		}
		if out, err := exec.CommandContext(limited(t), "slurm/"+script).CombinedOutput(); err == nil || !strings.Contains(string(out), "no directory") {
			t.Errorf("%s without a directory: %v: %s", script, err, out)
		}
	}
}
