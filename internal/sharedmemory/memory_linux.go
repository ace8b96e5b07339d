package sharedmemory

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"

	"golang.org/x/sys/unix"
)

// Create makes memory of so many bytes, 8 or more. No file system has it: it is gone with the last who maps it.
func Create(bytes int) (*Memory, Handle, error) {
	file, err := unix.MemfdCreate("volley", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, Handle{}, fmt.Errorf("shared memory: %w", err)
	}
	if err := unix.Ftruncate(file, int64(bytes)); err != nil {
		unix.Close(file)
		return nil, Handle{}, fmt.Errorf("shared memory of %d bytes: %w", bytes, err)
	}
	m, err := mapped(file, bytes)
	if err != nil {
		return nil, Handle{}, err
	}
	name := Handle{os.Getpid(), file, rand.Uint64()}
	binary.LittleEndian.PutUint64(m.Data, name.Nonce)
	return m, name, nil
}

// Open maps the memory of that name and of so many bytes.
func Open(name Handle, bytes int) (*Memory, error) {
	path := fmt.Sprintf("/proc/%d/fd/%d", name.PID, name.Descriptor)
	file, err := unix.Open(path, unix.O_RDWR|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	var info unix.Stat_t
	if err := unix.Fstat(file, &info); err != nil || info.Size != int64(bytes) || info.Mode&unix.S_IFMT != unix.S_IFREG {
		unix.Close(file)
		return nil, fmt.Errorf("%s: not the memory of %d bytes: %v", path, bytes, err)
	}
	m, err := mapped(file, bytes)
	if err != nil {
		return nil, err
	}
	if binary.LittleEndian.Uint64(m.Data) != name.Nonce {
		m.Unmap()
		return nil, fmt.Errorf("%s: another memory than that of process %d", path, name.PID)
	}
	return m, nil
}

// mapped maps a descriptor, which it closes where it cannot.
func mapped(file, bytes int) (*Memory, error) {
	data, err := unix.Mmap(file, 0, bytes, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		unix.Close(file)
		return nil, fmt.Errorf("shared memory of %d bytes: %w", bytes, err)
	}
	unix.Madvise(data, unix.MADV_HUGEPAGE) // where it may not, it serves as it is
	return &Memory{data, file}, nil
}

// Opened is called when all who are to have opened it: its name is of no more use, and it is zero from its start.
func (m *Memory) Opened() {
	unix.Close(m.file)
	m.file = -1
}

// Unmap gives the memory back. Nobody uses Data afterwards.
func (m *Memory) Unmap() {
	if m.file >= 0 {
		unix.Close(m.file)
	}
	unix.Munmap(m.Data)
	m.Data, m.file = nil, -1
}
