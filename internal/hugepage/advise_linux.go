package hugepage

import "syscall"

// advise asks for huge pages. A system that has none refuses, and the buffer serves as it is.
func advise(b []byte) { syscall.Madvise(b, syscall.MADV_HUGEPAGE) }
