package cli

import (
	"errors"

	"volley/group"
	"volley/internal/launch"
)

// cameTo notes, and returns, what protect has come to.
func (s *session) cameTo(protected bool, err error) string {
	s.coming.Lock()
	defer s.coming.Unlock()
	switch s.came = launch.ResultFailed; {
	case protected:
		s.came = launch.ResultOK
	case errors.As(err, new(*group.UnsettledError)):
		s.came = launch.ResultUnknown
	}
	return s.came
}

// ordered settles which commands run at nodes: of this verb, those of the group file.
func (o *groupOptions) ordered() {
	o.orders = map[string]*launch.Order{}
	for dir, c := range o.file.Commands {
		o.orders[dir] = &launch.Order{Commands: c, Name: dir, Meta: o.meta, Quiet: o.quiet}
	}
}

// commanders returns those of directories here that have commands.
func (o *groupOptions) commanders(dirs []string) (list []*launch.Commander) {
	for _, dir := range dirs {
		if of := o.orders[dir]; of != nil {
			list = append(list, &launch.Commander{Order: *of, Dir: dir, Environ: o.session.environ, Say: o.session.commandSays})
		}
	}
	return list
}
