package disk

import (
	"context"
	"io/fs"

	"volley/internal/pace"
)

// Paced returns a directory whose files are read, by all who use it together, at so many bytes a second on average. Once
// the context has ended, nothing waits any more.
func Paced(ctx context.Context, d Dir, rate int64) Dir {
	return &pacedDir{d, ctx, pace.New(rate)}
}

type pacedDir struct {
	Dir
	ctx  context.Context
	pace *pace.Pace
}

func (d *pacedDir) Sub(name string) (Dir, error) {
	sub, err := d.Dir.Sub(name)
	if err != nil {
		return nil, err
	}
	return &pacedDir{sub, d.ctx, d.pace}, nil
}

func (d *pacedDir) OpenFile(name string, flag int, perm fs.FileMode) (File, error) {
	f, err := d.Dir.OpenFile(name, flag, perm)
	if err != nil {
		return nil, err
	}
	return &pacedFile{f, d}, nil
}

type pacedFile struct {
	File
	dir *pacedDir
}

// mostAtOnce is how much is read in one go: a long read is many short ones, so that the disk serves others in between.
const mostAtOnce = 1 << 20

func (f *pacedFile) Read(p []byte) (int, error) {
	p = p[:min(len(p), mostAtOnce)]
	f.dir.pace.Wait(f.dir.ctx, int64(len(p)))
	return f.File.Read(p)
}

func (f *pacedFile) ReadAt(p []byte, offset int64) (n int, err error) {
	for {
		part := p[n:min(len(p), n+mostAtOnce)]
		f.dir.pace.Wait(f.dir.ctx, int64(len(part)))
		got, err := f.File.ReadAt(part, offset+int64(n))
		if n += got; err != nil || n == len(p) {
			return n, err
		}
	}
}
