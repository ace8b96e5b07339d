package group

import (
	"encoding/json"
	"io/fs"

	"volley/internal/disk"
)

// A touch tells whether a file was written to since: every write, and every change of its
// mode or name, gives it another ctime, and a copy is another inode. It is zero where the
// system does not tell.
type touch struct {
	Inode       uint64 `json:"inode"`
	Seconds     int64  `json:"ctime"`
	Nanoseconds int64  `json:"ctime_ns"`
}

func touchOf(info fs.FileInfo) touch {
	inode := disk.Inode(info)
	if inode == 0 {
		return touch{}
	}
	at := disk.Changed(info)
	return touch{inode, at.Unix(), int64(at.Nanosecond())}
}

// touches are those of a node's files after it was protected or recovered. They are a node's
// own: in a copy of the node they say nothing, which the inode of their own file tells.
type touches struct {
	Generation int64   `json:"generation"`
	Inode      uint64  `json:"inode"`
	Files      []touch `json:"files"` // by file, in the order of the entries
}

// readTouches returns the touches by path, or nothing where they are not this node's.
func (n *node) readTouches(g int64, x *Member) map[Name]touch {
	text, err := disk.ReadText(n.dir, metaPath(touchFile), mostNode+128*int64(len(x.Entries)))
	if err != nil {
		return nil
	}
	var t touches
	if text, err = disk.Unseal(text); err != nil || json.Unmarshal(text, &t) != nil {
		return nil
	}
	info, err := n.dir.Lstat(metaPath(touchFile))
	if err != nil || t.Generation != g || t.Inode == 0 || t.Inode != touchOf(info).Inode {
		return nil
	}
	of := map[Name]touch{}
	i := 0
	for _, e := range x.Entries {
		if e.Type == typeFile && i < len(t.Files) {
			of[e.Path] = t.Files[i]
			i++
		}
	}
	return of
}

// writeTouches stores those of a listing, for files that are as the record says.
func (n *node) writeTouches(g int64, x *Member, l *listing) error {
	const name = temporary + touchFile
	f, err := n.create(name)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	t := touches{Generation: g, Inode: touchOf(info).Inode}
	for i := range x.Entries {
		e := &x.Entries[i]
		if e.Type != typeFile {
			continue
		}
		var is touch
		if at := l.find(e.Path); at >= 0 {
			if now := &l.entries[at]; now.Type == typeFile && now.Size == e.Size && now.sameTime(e) {
				is = l.touches[at]
			}
		}
		t.Files = append(t.Files, is)
	}
	text, err := json.Marshal(t)
	if err != nil {
		return err
	}
	if _, err := f.Write(disk.Seal(text)); err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	return n.dir.Rename(metaPath(name), metaPath(touchFile))
}
