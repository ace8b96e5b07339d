package coded

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"volley/coded/manifest"
	"volley/files"
	"volley/internal/disk"
)

// A stored is a directory with a manifest, as a reader finds it.
type stored struct {
	Manifest *manifest.Manifest
	Copy     *manifest.Manifest // nil where it took the manifest's place, or cannot be read
	Damage   error              // of the manifest where its copy took its place

	path  string // of this rank
	close func()
}

// read reads the manifest of a directory, or its copy.
func read(dir disk.Dir, path string) (*stored, error) {
	m, err := readManifest(dir, path, manifest.FileName)
	duplicate, lacking := readManifest(dir, path, manifest.CopyName)
	switch {
	case err == nil:
		return &stored{Manifest: m, Copy: duplicate, path: path, close: func() {}}, nil
	case lacking == nil:
		return &stored{Manifest: duplicate, Damage: err, path: path, close: func() {}}, nil
	case !errors.Is(lacking, fs.ErrNotExist):
		err = fmt.Errorf("%w; %w", err, lacking)
	}
	return nil, err
}

// File returns the path of a file of the directory.
func (r *stored) File(name files.Name) string { return filepath.Join(r.path, string(name)) }

// Close lets go of the directory.
func (r *stored) Close() {
	r.close()
	r.close = func() {}
}

// share opens a directory with a shared lock, or returns a [*files.BusyError], unless the disk is for reading only.
func share(device disk.Disk, path string, holder files.Holder) (dir disk.Dir, free func(), err error) {
	dir, err = device.Open(path)
	if err != nil {
		return nil, nil, err
	}
	unlock, err := dir.Lock(LockName, true, holder)
	if errors.As(err, new(*files.BusyError)) {
		dir.Close()
		return nil, nil, err
	}
	return dir, func() {
		if unlock != nil {
			unlock(true)
		}
		dir.Close()
	}, nil
}

// openStored is [read] of a directory that is shared until the caller closes it.
func openStored(device disk.Disk, path string, holder files.Holder) (*stored, error) {
	dir, free, err := share(device, path, holder)
	if err != nil {
		return nil, err
	}
	r, err := read(dir, path)
	if err != nil {
		free()
		return nil, err
	}
	r.close = free
	return r, nil
}

// ReadManifest reads the file of a manifest. Its errors are those of [manifest.Parse] and of the file system.
func ReadManifest(path string) (*manifest.Manifest, error) {
	dir, err := disk.OS.Open(filepath.Dir(path))
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	return readManifest(dir, filepath.Dir(path), filepath.Base(path))
}

// mostText is the bytes that a manifest may have.
const mostText = 1 << 30

// readManifest reads the manifest of that name in a directory, whose path errors have.
func readManifest(dir disk.Dir, path, name string) (*manifest.Manifest, error) {
	path = filepath.Join(path, name)
	data, err := disk.ReadText(dir, name, mostText)
	pathError := new(fs.PathError)
	switch {
	case errors.As(err, &pathError) && pathError.Op == "read": // it is there, and no manifest
		return nil, fmt.Errorf("%s: %w", path, pathError.Err)
	case errors.As(err, &pathError):
		err = &fs.PathError{Op: "open", Path: path, Err: pathError.Err}
	}
	if err != nil {
		return nil, err
	}
	m, err := manifest.Parse(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return m, nil
}
