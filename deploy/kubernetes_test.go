//go:build linux

package deploy

import (
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	batch "k8s.io/api/batch/v1"
	core "k8s.io/api/core/v1"
	network "k8s.io/api/networking/v1"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"

	"volley/transport/transporttest"
)

// cluster is what kubectl apply -k makes of the folder kubernetes.
type cluster struct {
	secret  core.Secret
	service core.Service
	policy  network.NetworkPolicy
	jobs    map[string]batch.JobSpec // by name, those of CronJobs too
}

// build makes it, with strict decoding by the types of the API.
func build(t *testing.T) *cluster {
	t.Helper()
	dir := t.TempDir()
	must(t, os.CopyFS(dir, os.DirFS("kubernetes")))
	write(t, filepath.Join(dir, "run.secret"), secret()+"\n", 0o600)
	resources, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), dir)
	must(t, err)
	c := &cluster{jobs: map[string]batch.JobSpec{}}
	for _, r := range resources.Resources() {
		text, err := r.AsYAML()
		must(t, err)
		var namespace core.Namespace
		var cron batch.CronJob
		var job batch.Job
		into, ok := map[string]any{"Secret": &c.secret, "Service": &c.service, "NetworkPolicy": &c.policy, "Namespace": &namespace, "CronJob": &cron, "Job": &job}[r.GetKind()]
		if !ok {
			t.Fatalf("%s: no type for it", r.GetKind())
		}
		if err := yaml.UnmarshalStrict(text, into); err != nil {
			t.Errorf("%s %s: %v", r.GetKind(), r.GetName(), err)
		}
		switch r.GetKind() {
		case "CronJob":
			c.jobs[cron.Name] = cron.Spec.JobTemplate.Spec
			if cron.Spec.ConcurrencyPolicy != batch.ForbidConcurrent {
				t.Errorf("%s: two runs at once", cron.Name)
			}
		case "Job":
			c.jobs[job.Name] = job.Spec
			if job.Spec.Suspend == nil || !*job.Spec.Suspend {
				t.Errorf("%s starts when it is applied", job.Name)
			}
		}
	}
	return c
}

// TestKubernetes checks what the pods may do, and that those of a Job find each other.
func TestKubernetes(t *testing.T) {
	bin, c := binary(t), build(t)
	if len(c.jobs) != 4 {
		t.Fatalf("%d jobs", len(c.jobs))
	}
	for name, job := range c.jobs {
		pod := job.Template.Spec
		at := pod.Containers[0]
		checkFlags(t, bin, name, at.Args)
		if "volley-"+at.Args[0] != name || job.CompletionMode == nil || *job.CompletionMode != batch.IndexedCompletion || *job.Completions != *job.Parallelism ||
			!slices.Contains(at.Args, fmt.Sprintf("--size=%d", *job.Completions)) {
			t.Errorf("%s: %d completions, %d at once, and %v", name, *job.Completions, *job.Parallelism, at.Args)
		}
		if pod.Subdomain != c.service.Name || !c.service.Spec.PublishNotReadyAddresses || c.service.Spec.ClusterIP != core.ClusterIPNone {
			t.Errorf("%s: the Service %s does not name its pods", name, c.service.Name)
		}
		for _, selector := range []map[string]string{c.service.Spec.Selector, c.policy.Spec.PodSelector.MatchLabels, pod.Affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution[0].LabelSelector.MatchLabels} {
			for key, value := range selector {
				if job.Template.Labels[key] != value {
					t.Errorf("%s: %s=%s selects none of its pods", name, key, value)
				}
			}
		}
		for _, e := range at.Env {
			if r := e.ValueFrom.SecretKeyRef; r != nil && (r.Name != c.secret.Name || c.secret.Data[r.Key] == nil) {
				t.Errorf("%s: there is no Secret %s with %s", name, r.Name, r.Key)
			}
		}
		s, p := at.SecurityContext, pod.SecurityContext
		if !*p.RunAsNonRoot || *p.RunAsUser == 0 || p.SeccompProfile.Type != core.SeccompProfileTypeRuntimeDefault || !*s.ReadOnlyRootFilesystem ||
			*s.AllowPrivilegeEscalation || s.Privileged != nil || s.Capabilities.Add != nil || fmt.Sprint(s.Capabilities.Drop) != "[ALL]" ||
			*pod.AutomountServiceAccountToken || pod.HostNetwork || pod.HostPID || len(pod.Volumes) != 1 {
			t.Errorf("%s may do more than use its directory", name)
		}
	}
}

// pods returns the processes of a Job's pods, with nothing but its environment, on loopback; pod i has the directory i.
func (c *cluster) pods(t *testing.T, bin, name string, dirs []string) []*exec.Cmd {
	t.Helper()
	meet := transporttest.Free(t)
	container := c.jobs[name].Template.Spec.Containers[0]
	var commands []*exec.Cmd
	for i, dir := range dirs {
		job := name + "-29000000"
		env := []string{"PATH=/bin", fmt.Sprint("JOB_COMPLETION_INDEX=", i), fmt.Sprintf("HOSTNAME=%s-%d", job, i)}
		values := strings.NewReplacer("$(JOB)-0."+c.service.Name+":7000", meet, "/data", dir)
		for _, e := range container.Env {
			switch {
			case e.ValueFrom.SecretKeyRef != nil:
				env = append(env, e.Name+"="+string(c.secret.Data[e.ValueFrom.SecretKeyRef.Key]))
			case e.ValueFrom.FieldRef != nil:
				env = append(env, e.Name+"="+job)
			}
		}
		x := exec.CommandContext(limited(t), filepath.Join(bin, "volley"))
		for _, arg := range container.Args {
			x.Args = append(x.Args, values.Replace(arg))
		}
		x.Env, x.Dir = env, "/"
		unprivileged(x)
		commands = append(commands, x)
	}
	return commands
}

// TestPods runs the Jobs as an unprivileged user. The pods come to other nodes each time, and a node is lost.
func TestPods(t *testing.T) {
	bin, c, dirs := binary(t), build(t), nodes(t, 3)
	want := func(i int) string { return strings.Repeat(fmt.Sprintln("node", i), 10_000) }
	for _, step := range []struct {
		job   string
		order [3]int
		code  int
	}{
		{"volley-protect", [3]int{0, 1, 2}, exitOK},
		{"volley-verify", [3]int{2, 0, 1}, exitOK},
		{"volley-verify", [3]int{1, 2, 0}, exitWhole}, // node 1 is lost
		{"volley-recover", [3]int{0, 2, 1}, exitOK},
		{"volley-encode", [3]int{0, 1, 2}, exitOK},
	} {
		if step.code == exitWhole {
			must(t, cmp.Or(os.Remove(filepath.Join(dirs[1], "packet")), os.RemoveAll(filepath.Join(dirs[1], ".volley"))))
		}
		list := []string{dirs[step.order[0]], dirs[step.order[1]], dirs[step.order[2]]}
		if codes, text := together(t, c.pods(t, bin, step.job, list)); len(codes) != 1 || codes[0] != step.code {
			t.Fatalf("%s, directories %v: exit codes %v, want %d: %s", step.job, step.order, codes, step.code, text)
		}
	}
	for i, dir := range dirs {
		list, _ := filepath.Glob(filepath.Join(dir, "coded", "coded.*"))
		if read(t, filepath.Join(dir, "packet")) != want(i) || len(list) != 1 {
			t.Errorf("%s has another packet, or the coded files %v", dir, list)
		}
	}
}
