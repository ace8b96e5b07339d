! Volley for Fortran programs that use MPI: module volley has the functions of volley.h, which describes them.
!
!   mpif90 -o program volley.f90 program.f90 -lvolley
!
! comm is the handle of a communicator: an integer, or comm%MPI_VAL with mpi_f08. Packets are of any type and rank, and
! their lengths are in bytes: storage_size(x) / 8 * size(x, kind=c_size_t). An option that is absent has the default of
! volley.h. Blanks at the end of text are left out.
module volley
  use, intrinsic :: iso_c_binding, only: c_char, c_double, c_f_pointer, c_int, c_loc, c_long_long, c_null_char, c_null_ptr, &
    c_ptr, c_size_t
  implicit none
  private
  public :: volley_encode, volley_decode, volley_protect, volley_recover, volley_error, volley_version
  public :: volley_buffer, volley_parity_bytes, volley_protect_buffers, volley_buffer_sizes, volley_recover_buffers
  public :: volley_protect_start, volley_protect_buffers_start, volley_recover_buffers_start, volley_test, volley_wait
  public :: volley_verify, volley_status, volley_unprotect, volley_report, volley_step_path, volley_recover_start
  public :: volley_progress, volley_cancel
  public :: volley_alloc, volley_free, volley_encode_init, volley_run, volley_request_free

  ! What the functions return: volley_ok, or what kind of error volley_error tells.
  integer, parameter, public :: volley_ok = 0, volley_failed = 1, volley_usage = 2, volley_wrong = 3, volley_cancelled = 4, &
    volley_none = 5
  integer, parameter, public :: volley_request_null = 0 ! requests are integers

  integer(c_long_long), parameter, public :: volley_latest = -1 ! the newest snapshot, in step

  ! How the nodes of a group are: volley.h describes the members.
  type, bind(c) :: volley_report
    integer(c_int) :: is_protected = 0, whole = 0, recoverable = 0, nodes = 0, tolerate = 0, broken = 0, lost = 0, may_lose = 0, &
      set = 0, sets = 0
    integer(c_long_long) :: files_at_risk = 0, since = 0, generation = 0, step = volley_latest
  end type

  ! A piece of this process's memory: volley_buffer(c_loc(x), bytes), where x has the attribute target.
  type, bind(c) :: volley_buffer
    type(c_ptr) :: data
    integer(c_size_t) :: bytes
  end type

  type, bind(c) :: options ! volley_options
    type(c_ptr) :: field = c_null_ptr, matrix = c_null_ptr, algorithm = c_null_ptr
    integer(c_int) :: ports = 0
    real(c_double) :: timeout = 0
    integer(c_size_t) :: memory = 0
    integer(c_int) :: unchecked = 0
    type(c_ptr) :: network = c_null_ptr
  end type

  type, bind(c) :: group_options ! volley_group_options
    real(c_double) :: timeout = 0
    integer(c_size_t) :: memory = 0
    type(c_ptr) :: key = c_null_ptr, digest = c_null_ptr
    type(c_ptr) :: step = c_null_ptr
    integer(c_int) :: retain = 0
    integer(c_int) :: set_size = 0
    type(c_ptr) :: domain = c_null_ptr
  end type

  interface
    function encode_f(comm, packet, bytes, coded, coded_bytes, o) bind(c, name="volley_encode_f")
      import :: c_int, c_ptr, c_size_t, options
      integer(c_int), value :: comm
      type(c_ptr), value :: packet, coded
      integer(c_size_t), value :: bytes, coded_bytes
      type(options), intent(in) :: o
      integer(c_int) :: encode_f
    end function

    function encode_init_f(comm, packet, bytes, coded, coded_bytes, o, request) bind(c, name="volley_encode_init_f")
      import :: c_int, c_ptr, c_size_t, options
      integer(c_int), value :: comm
      type(c_ptr), value :: packet, coded
      integer(c_size_t), value :: bytes, coded_bytes
      type(options), intent(in) :: o
      integer(c_int), intent(out) :: request
      integer(c_int) :: encode_init_f
    end function

    ! Sets data to memory of this process, which the others of its host reach: c_f_pointer makes an array of it.
    function volley_alloc(comm, bytes, data) bind(c, name="volley_alloc_f")
      import :: c_int, c_ptr, c_size_t
      integer(c_int), value :: comm
      integer(c_size_t), value :: bytes
      type(c_ptr), intent(out) :: data
      integer(c_int) :: volley_alloc
    end function

    ! Gives memory of volley_alloc back.
    function volley_free(data) bind(c, name="volley_free")
      import :: c_int, c_ptr
      type(c_ptr), value :: data
      integer(c_int) :: volley_free
    end function

    ! Runs a request of volley_encode_init once.
    function volley_run(request) bind(c, name="volley_run")
      import :: c_int
      integer(c_int), intent(inout) :: request
      integer(c_int) :: volley_run
    end function

    ! Frees a request of volley_encode_init.
    function volley_request_free(request) bind(c, name="volley_request_free")
      import :: c_int
      integer(c_int), intent(inout) :: request
      integer(c_int) :: volley_request_free
    end function

    function decode_f(comm, packet, bytes, lost, coded, coded_bytes, o) bind(c, name="volley_decode_f")
      import :: c_int, c_ptr, c_size_t, options
      integer(c_int), value :: comm
      type(c_ptr), value :: packet, coded
      integer(c_size_t), value :: bytes, coded_bytes
      integer(c_int), value :: lost
      type(options), intent(in) :: o
      integer(c_int) :: decode_f
    end function

    function protect_f(comm, path, tolerate, o) bind(c, name="volley_protect_f")
      import :: c_char, c_int, group_options
      integer(c_int), value :: comm
      character(c_char), intent(in) :: path(*)
      integer(c_int), value :: tolerate
      type(group_options), intent(in) :: o
      integer(c_int) :: protect_f
    end function

    function recover_f(comm, path, o) bind(c, name="volley_recover_f")
      import :: c_char, c_int, group_options
      integer(c_int), value :: comm
      character(c_char), intent(in) :: path(*)
      type(group_options), intent(in) :: o
      integer(c_int) :: recover_f
    end function

    function verify_f(comm, path, o, report) bind(c, name="volley_verify_f")
      import :: c_char, c_int, group_options, volley_report
      integer(c_int), value :: comm
      character(c_char), intent(in) :: path(*)
      type(group_options), intent(in) :: o
      type(volley_report), intent(inout) :: report
      integer(c_int) :: verify_f
    end function

    function status_f(comm, path, o, report) bind(c, name="volley_status_f")
      import :: c_char, c_int, group_options, volley_report
      integer(c_int), value :: comm
      character(c_char), intent(in) :: path(*)
      type(group_options), intent(in) :: o
      type(volley_report), intent(inout) :: report
      integer(c_int) :: status_f
    end function

    function unprotect_f(comm, path, o) bind(c, name="volley_unprotect_f")
      import :: c_char, c_int, group_options
      integer(c_int), value :: comm
      character(c_char), intent(in) :: path(*)
      type(group_options), intent(in) :: o
      integer(c_int) :: unprotect_f
    end function

    function c_step_path(root, step, path, bytes) bind(c, name="volley_step_path")
      import :: c_char, c_int, c_long_long, c_size_t
      character(c_char), intent(in) :: root(*)
      integer(c_long_long), value :: step
      character(c_char), intent(inout) :: path(*)
      integer(c_size_t), value :: bytes
      integer(c_int) :: c_step_path
    end function

    function parity_bytes_f(comm, buffers, count, tolerate, o, parity_bytes) bind(c, name="volley_parity_bytes_f")
      import :: c_int, c_size_t, group_options, volley_buffer
      integer(c_int), value :: comm, count, tolerate
      type(volley_buffer), intent(in) :: buffers(*)
      type(group_options), intent(in) :: o
      integer(c_size_t), intent(out) :: parity_bytes
      integer(c_int) :: parity_bytes_f
    end function

    function buffer_sizes_f(comm, parity, parity_bytes, bytes, count, o) bind(c, name="volley_buffer_sizes_f")
      import :: c_int, c_ptr, c_size_t, group_options
      integer(c_int), value :: comm
      type(c_ptr), value :: parity
      integer(c_size_t), intent(inout) :: parity_bytes, bytes(*)
      integer(c_int), intent(inout) :: count
      type(group_options), intent(in) :: o
      integer(c_int) :: buffer_sizes_f
    end function

    function protect_buffers_f(comm, buffers, count, tolerate, parity, parity_bytes, o) bind(c, name="volley_protect_buffers_f")
      import :: c_int, c_ptr, c_size_t, group_options, volley_buffer
      integer(c_int), value :: comm, count, tolerate
      type(volley_buffer), intent(in) :: buffers(*)
      type(c_ptr), value :: parity
      integer(c_size_t), value :: parity_bytes
      type(group_options), intent(in) :: o
      integer(c_int) :: protect_buffers_f
    end function

    function recover_buffers_f(comm, buffers, count, lost, parity, parity_bytes, o) bind(c, name="volley_recover_buffers_f")
      import :: c_int, c_ptr, c_size_t, group_options, volley_buffer
      integer(c_int), value :: comm, count, lost
      type(volley_buffer), intent(in) :: buffers(*)
      type(c_ptr), value :: parity
      integer(c_size_t), value :: parity_bytes
      type(group_options), intent(in) :: o
      integer(c_int) :: recover_buffers_f
    end function

    function protect_start_f(comm, path, tolerate, o, request) bind(c, name="volley_protect_start_f")
      import :: c_char, c_int, group_options
      integer(c_int), value :: comm, tolerate
      character(c_char), intent(in) :: path(*)
      type(group_options), intent(in) :: o
      integer(c_int), intent(out) :: request
      integer(c_int) :: protect_start_f
    end function

    function recover_start_f(comm, path, o, request) bind(c, name="volley_recover_start_f")
      import :: c_char, c_int, group_options
      integer(c_int), value :: comm
      character(c_char), intent(in) :: path(*)
      type(group_options), intent(in) :: o
      integer(c_int), intent(out) :: request
      integer(c_int) :: recover_start_f
    end function

    function protect_buffers_start_f(comm, buffers, count, tolerate, parity, parity_bytes, o, request) &
        bind(c, name="volley_protect_buffers_start_f")
      import :: c_int, c_ptr, c_size_t, group_options, volley_buffer
      integer(c_int), value :: comm, count, tolerate
      type(volley_buffer), intent(in) :: buffers(*)
      type(c_ptr), value :: parity
      integer(c_size_t), value :: parity_bytes
      type(group_options), intent(in) :: o
      integer(c_int), intent(out) :: request
      integer(c_int) :: protect_buffers_start_f
    end function

    function recover_buffers_start_f(comm, buffers, count, lost, parity, parity_bytes, o, request) &
        bind(c, name="volley_recover_buffers_start_f")
      import :: c_int, c_ptr, c_size_t, group_options, volley_buffer
      integer(c_int), value :: comm, count, lost
      type(volley_buffer), intent(in) :: buffers(*)
      type(c_ptr), value :: parity
      integer(c_size_t), value :: parity_bytes
      type(group_options), intent(in) :: o
      integer(c_int), intent(out) :: request
      integer(c_int) :: recover_buffers_start_f
    end function

    function c_test(request, done) bind(c, name="volley_test")
      import :: c_int
      integer(c_int), intent(inout) :: request, done
      integer(c_int) :: c_test
    end function

    function c_progress(request, done, total) bind(c, name="volley_progress")
      import :: c_int, c_long_long
      integer(c_int), intent(in) :: request
      integer(c_long_long), intent(inout) :: done, total
      integer(c_int) :: c_progress
    end function

    function c_cancel(request) bind(c, name="volley_cancel")
      import :: c_int
      integer(c_int), intent(in) :: request
      integer(c_int) :: c_cancel
    end function

    function c_wait(request) bind(c, name="volley_wait")
      import :: c_int
      integer(c_int), intent(inout) :: request
      integer(c_int) :: c_wait
    end function

    function c_error() bind(c, name="volley_error")
      import :: c_ptr
      type(c_ptr) :: c_error
    end function

    function c_version() bind(c, name="volley_version")
      import :: c_ptr
      type(c_ptr) :: c_version
    end function

    pure function strlen(s) bind(c)
      import :: c_ptr, c_size_t
      type(c_ptr), value :: s
      integer(c_size_t) :: strlen
    end function
  end interface

contains

  ! Encodes packet, of bytes bytes, into coded, which has room for coded_bytes.
  integer function volley_encode(comm, packet, bytes, coded, coded_bytes, &
      field, matrix, algorithm, ports, timeout, memory, unchecked, network) result(code)
    integer, intent(in) :: comm
    type(*), contiguous, target, intent(in) :: packet(..)
    type(*), contiguous, target, intent(inout) :: coded(..)
    integer(c_size_t), intent(in) :: bytes, coded_bytes
    character(*), intent(in), optional :: field, matrix, algorithm, network
    integer, intent(in), optional :: ports
    real(c_double), intent(in), optional :: timeout
    integer(c_size_t), intent(in), optional :: memory
    logical, intent(in), optional :: unchecked
    character(:), allocatable, target :: f, m, a, n
    type(options) :: o

    f = text(field); m = text(matrix); a = text(algorithm); n = text(network)
    o = options(field=c_loc(f), matrix=c_loc(m), algorithm=c_loc(a), network=c_loc(n))
    if (present(ports)) o%ports = ports
    if (present(timeout)) o%timeout = timeout
    if (present(memory)) o%memory = memory
    if (present(unchecked)) o%unchecked = flag(unchecked)
    code = encode_f(comm, c_loc(packet), bytes, c_loc(coded), coded_bytes, o)
  end function

  ! Makes volley_encode ready for volley_run. packet and coded are what volley_alloc has set, or c_loc of targets.
  integer function volley_encode_init(comm, packet, bytes, coded, coded_bytes, request, &
      field, matrix, algorithm, ports, timeout, memory, unchecked, network) result(code)
    integer, intent(in) :: comm
    type(c_ptr), intent(in) :: packet, coded
    integer(c_size_t), intent(in) :: bytes, coded_bytes
    character(*), intent(in), optional :: field, matrix, algorithm, network
    integer, intent(in), optional :: ports
    real(c_double), intent(in), optional :: timeout
    integer(c_size_t), intent(in), optional :: memory
    logical, intent(in), optional :: unchecked
    integer, intent(out) :: request
    character(:), allocatable, target :: f, m, a, n
    type(options) :: o

    f = text(field); m = text(matrix); a = text(algorithm); n = text(network)
    o = options(field=c_loc(f), matrix=c_loc(m), algorithm=c_loc(a), network=c_loc(n))
    if (present(ports)) o%ports = ports
    if (present(timeout)) o%timeout = timeout
    if (present(memory)) o%memory = memory
    if (present(unchecked)) o%unchecked = flag(unchecked)
    code = encode_init_f(comm, packet, bytes, coded, coded_bytes, o, request)
  end function

  ! Decodes: packet, of bytes bytes, comes back where lost. coded is absent where this process has lost it.
  integer function volley_decode(comm, packet, bytes, lost, coded, coded_bytes, &
      field, matrix, algorithm, ports, timeout, memory, unchecked, network) result(code)
    integer, intent(in) :: comm
    type(*), contiguous, target, intent(inout) :: packet(..)
    integer(c_size_t), intent(in) :: bytes
    logical, intent(in) :: lost
    type(*), contiguous, target, intent(in), optional :: coded(..)
    integer(c_size_t), intent(in), optional :: coded_bytes
    character(*), intent(in), optional :: field, matrix, algorithm, network
    integer, intent(in), optional :: ports
    real(c_double), intent(in), optional :: timeout
    integer(c_size_t), intent(in), optional :: memory
    logical, intent(in), optional :: unchecked
    character(:), allocatable, target :: f, m, a, n
    type(options) :: o
    type(c_ptr) :: has
    integer(c_size_t) :: has_bytes

    f = text(field); m = text(matrix); a = text(algorithm); n = text(network)
    o = options(field=c_loc(f), matrix=c_loc(m), algorithm=c_loc(a), network=c_loc(n))
    if (present(ports)) o%ports = ports
    if (present(timeout)) o%timeout = timeout
    if (present(memory)) o%memory = memory
    if (present(unchecked)) o%unchecked = flag(unchecked)
    has = c_null_ptr
    has_bytes = 0
    if (present(coded)) has = c_loc(coded)
    if (present(coded_bytes)) has_bytes = coded_bytes
    code = decode_f(comm, c_loc(packet), bytes, flag(lost), has, has_bytes, o)
  end function

  ! Protects path, the directory of this process's node or, with step, its root of snapshots.
  integer function volley_protect(comm, path, tolerate, &
      timeout, memory, key, digest, step, retain, set_size, domain) result(code)
    integer, intent(in) :: comm, tolerate
    character(*), intent(in) :: path
    real(c_double), intent(in), optional :: timeout
    integer(c_size_t), intent(in), optional :: memory
    character(*), intent(in), optional :: key, digest, domain
    integer(c_long_long), intent(inout), optional, target :: step
    integer, intent(in), optional :: retain, set_size
    character(:), allocatable, target :: k, d, m
    type(group_options) :: o

    k = text(key); d = text(digest); m = text(domain)
    o = group_options(key=c_loc(k), digest=c_loc(d))
    if (present(timeout)) o%timeout = timeout
    if (present(memory)) o%memory = memory
    if (present(step)) o%step = c_loc(step)
    if (present(retain)) o%retain = retain
    if (present(set_size)) o%set_size = set_size
    if (present(domain)) o%domain = c_loc(m)
    code = protect_f(comm, text(path), tolerate, o)
  end function

  ! Brings back what is lost or damaged of a group; path is the directory of this process's node, or its root.
  integer function volley_recover(comm, path, &
      timeout, memory, key, step, set_size, domain) result(code)
    integer, intent(in) :: comm
    character(*), intent(in) :: path
    real(c_double), intent(in), optional :: timeout
    integer(c_size_t), intent(in), optional :: memory
    character(*), intent(in), optional :: key, domain
    integer(c_long_long), intent(inout), optional, target :: step
    integer, intent(in), optional :: set_size
    character(:), allocatable, target :: k, m
    type(group_options) :: o

    k = text(key); m = text(domain)
    o = group_options(key=c_loc(k))
    if (present(timeout)) o%timeout = timeout
    if (present(memory)) o%memory = memory
    if (present(step)) o%step = c_loc(step)
    if (present(set_size)) o%set_size = set_size
    if (present(domain)) o%domain = c_loc(m)
    code = recover_f(comm, text(path), o)
  end function

  ! Starts volley_protect, which goes on beside the caller: step has the attribute target or asynchronous.
  integer function volley_protect_start(comm, path, tolerate, request, &
      timeout, memory, key, digest, step, retain, set_size, domain) result(code)
    integer, intent(in) :: comm, tolerate
    character(*), intent(in) :: path
    integer, intent(out) :: request
    real(c_double), intent(in), optional :: timeout
    integer(c_size_t), intent(in), optional :: memory
    character(*), intent(in), optional :: key, digest, domain
    integer(c_long_long), intent(inout), optional, target :: step
    integer, intent(in), optional :: retain, set_size
    character(:), allocatable, target :: k, d, m
    type(group_options) :: o

    k = text(key); d = text(digest); m = text(domain)
    o = group_options(key=c_loc(k), digest=c_loc(d))
    if (present(timeout)) o%timeout = timeout
    if (present(memory)) o%memory = memory
    if (present(step)) o%step = c_loc(step)
    if (present(retain)) o%retain = retain
    if (present(set_size)) o%set_size = set_size
    if (present(domain)) o%domain = c_loc(m)
    code = protect_start_f(comm, text(path), tolerate, o, request)
  end function

  ! Starts volley_recover, which goes on beside the caller: step has the attribute target or asynchronous.
  integer function volley_recover_start(comm, path, request, &
      timeout, memory, key, step, set_size, domain) result(code)
    integer, intent(in) :: comm
    character(*), intent(in) :: path
    integer, intent(out) :: request
    real(c_double), intent(in), optional :: timeout
    integer(c_size_t), intent(in), optional :: memory
    character(*), intent(in), optional :: key, domain
    integer(c_long_long), intent(inout), optional, target :: step
    integer, intent(in), optional :: set_size
    character(:), allocatable, target :: k, m
    type(group_options) :: o

    k = text(key); m = text(domain)
    o = group_options(key=c_loc(k))
    if (present(timeout)) o%timeout = timeout
    if (present(memory)) o%memory = memory
    if (present(step)) o%step = c_loc(step)
    if (present(set_size)) o%set_size = set_size
    if (present(domain)) o%domain = c_loc(m)
    code = recover_start_f(comm, text(path), o, request)
  end function

  ! Reads all nodes, and compares them with what was protected.
  integer function volley_verify(comm, path, report, &
      timeout, memory, key, step, set_size, domain) result(code)
    integer, intent(in) :: comm
    character(*), intent(in) :: path
    type(volley_report), intent(inout) :: report
    real(c_double), intent(in), optional :: timeout
    integer(c_size_t), intent(in), optional :: memory
    character(*), intent(in), optional :: key, domain
    integer(c_long_long), intent(inout), optional, target :: step
    integer, intent(in), optional :: set_size
    character(:), allocatable, target :: k, m
    type(group_options) :: o

    k = text(key); m = text(domain)
    o = group_options(key=c_loc(k))
    if (present(timeout)) o%timeout = timeout
    if (present(memory)) o%memory = memory
    if (present(step)) o%step = c_loc(step)
    if (present(set_size)) o%set_size = set_size
    if (present(domain)) o%domain = c_loc(m)
    code = verify_f(comm, text(path), o, report)
  end function

  ! Says how the nodes are, by names, lengths and times.
  integer function volley_status(comm, path, report, &
      timeout, memory, key, step, set_size, domain) result(code)
    integer, intent(in) :: comm
    character(*), intent(in) :: path
    type(volley_report), intent(inout) :: report
    real(c_double), intent(in), optional :: timeout
    integer(c_size_t), intent(in), optional :: memory
    character(*), intent(in), optional :: key, domain
    integer(c_long_long), intent(inout), optional, target :: step
    integer, intent(in), optional :: set_size
    character(:), allocatable, target :: k, m
    type(group_options) :: o

    k = text(key); m = text(domain)
    o = group_options(key=c_loc(k))
    if (present(timeout)) o%timeout = timeout
    if (present(memory)) o%memory = memory
    if (present(step)) o%step = c_loc(step)
    if (present(set_size)) o%set_size = set_size
    if (present(domain)) o%domain = c_loc(m)
    code = status_f(comm, text(path), o, report)
  end function

  ! Ends the protection of a group.
  integer function volley_unprotect(comm, path, &
      timeout, memory, key, step, set_size, domain) result(code)
    integer, intent(in) :: comm
    character(*), intent(in) :: path
    real(c_double), intent(in), optional :: timeout
    integer(c_size_t), intent(in), optional :: memory
    character(*), intent(in), optional :: key, domain
    integer(c_long_long), intent(inout), optional, target :: step
    integer, intent(in), optional :: set_size
    character(:), allocatable, target :: k, m
    type(group_options) :: o

    k = text(key); m = text(domain)
    o = group_options(key=c_loc(k))
    if (present(timeout)) o%timeout = timeout
    if (present(memory)) o%memory = memory
    if (present(step)) o%step = c_loc(step)
    if (present(set_size)) o%set_size = set_size
    if (present(domain)) o%domain = c_loc(m)
    code = unprotect_f(comm, text(path), o)
  end function

  ! Makes the directory of a snapshot, empty, and tells its path, in which the files are written.
  integer function volley_step_path(root, step, path) result(code)
    character(*), intent(in) :: root
    integer(c_long_long), intent(in) :: step
    character(:), allocatable, intent(out) :: path
    character(c_char) :: room(4096)
    integer :: i

    code = c_step_path(text(root), step, room, size(room, kind=c_size_t))
    path = ""
    if (code /= volley_ok) return
    do i = 1, size(room)
      if (room(i) == c_null_char) exit
      path = path // room(i)
    end do
  end function

  ! Tells how many bytes of this process are done, and of how many.
  integer function volley_progress(request, done, total) result(code)
    integer, intent(in) :: request
    integer(c_long_long), intent(out) :: done, total
    done = 0
    total = 0
    code = c_progress(request, done, total)
  end function

  ! Ends the run of a request at all processes.
  integer function volley_cancel(request) result(code)
    integer, intent(in) :: request
    code = c_cancel(request)
  end function

  ! Sets parity_bytes to the room that volley_protect_buffers takes for buffers of these lengths.
  integer function volley_parity_bytes(comm, buffers, tolerate, parity_bytes, key, digest, timeout) result(code)
    integer, intent(in) :: comm, tolerate
    type(volley_buffer), intent(in) :: buffers(:)
    integer(c_size_t), intent(out) :: parity_bytes
    character(*), intent(in), optional :: key, digest
    real(c_double), intent(in), optional :: timeout
    character(:), allocatable, target :: k, d
    type(group_options) :: o

    k = text(key); d = text(digest)
    o = group_options(key=c_loc(k), digest=c_loc(d))
    if (present(timeout)) o%timeout = timeout
    code = parity_bytes_f(comm, buffers, size(buffers), tolerate, o, parity_bytes)
  end function

  ! Tells the lengths of what this process had. parity is absent where it is lost, and count is first the room in bytes.
  integer function volley_buffer_sizes(comm, parity_bytes, bytes, count, parity, key, timeout) result(code)
    integer, intent(in) :: comm
    integer(c_size_t), intent(inout) :: parity_bytes, bytes(*)
    integer, intent(inout) :: count
    type(*), contiguous, target, intent(in), optional :: parity(..)
    character(*), intent(in), optional :: key
    real(c_double), intent(in), optional :: timeout
    character(:), allocatable, target :: k
    type(c_ptr) :: has
    type(group_options) :: o

    k = text(key)
    o = group_options(key=c_loc(k))
    if (present(timeout)) o%timeout = timeout
    has = c_null_ptr
    if (present(parity)) has = c_loc(parity)
    code = buffer_sizes_f(comm, has, parity_bytes, bytes, count, o)
  end function

  ! Makes parity, of parity_bytes, of the buffers of all. parity is an array, and not its c_loc.
  integer function volley_protect_buffers(comm, buffers, tolerate, parity, parity_bytes, &
      timeout, memory, key, digest) result(code)
    integer, intent(in) :: comm, tolerate
    type(volley_buffer), intent(in) :: buffers(:)
    type(*), contiguous, target, intent(inout) :: parity(..)
    integer(c_size_t), intent(in) :: parity_bytes
    real(c_double), intent(in), optional :: timeout
    integer(c_size_t), intent(in), optional :: memory
    character(*), intent(in), optional :: key, digest
    character(:), allocatable, target :: k, d
    type(group_options) :: o

    k = text(key); d = text(digest)
    o = group_options(key=c_loc(k), digest=c_loc(d))
    if (present(timeout)) o%timeout = timeout
    if (present(memory)) o%memory = memory
    code = protect_buffers_f(comm, buffers, size(buffers), tolerate, c_loc(parity), parity_bytes, o)
  end function

  ! Brings back the buffers and the parity of processes where they are lost, and what is damaged elsewhere. parity is
  ! an array, and not its c_loc.
  integer function volley_recover_buffers(comm, buffers, lost, parity, parity_bytes, &
      timeout, memory, key) result(code)
    integer, intent(in) :: comm
    type(volley_buffer), intent(in) :: buffers(:)
    logical, intent(in) :: lost
    type(*), contiguous, target, intent(inout) :: parity(..)
    integer(c_size_t), intent(in) :: parity_bytes
    real(c_double), intent(in), optional :: timeout
    integer(c_size_t), intent(in), optional :: memory
    character(*), intent(in), optional :: key
    character(:), allocatable, target :: k
    type(group_options) :: o

    k = text(key)
    o = group_options(key=c_loc(k))
    if (present(timeout)) o%timeout = timeout
    if (present(memory)) o%memory = memory
    code = recover_buffers_f(comm, buffers, size(buffers), flag(lost), c_loc(parity), parity_bytes, o)
  end function

  ! Starts volley_protect_buffers, which goes on beside the caller. parity is c_loc of a target.
  integer function volley_protect_buffers_start(comm, buffers, tolerate, parity, parity_bytes, request, &
      timeout, memory, key, digest) result(code)
    integer, intent(in) :: comm, tolerate
    type(volley_buffer), intent(in) :: buffers(:)
    type(c_ptr), intent(in) :: parity
    integer(c_size_t), intent(in) :: parity_bytes
    integer, intent(out) :: request
    real(c_double), intent(in), optional :: timeout
    integer(c_size_t), intent(in), optional :: memory
    character(*), intent(in), optional :: key, digest
    character(:), allocatable, target :: k, d
    type(group_options) :: o

    k = text(key); d = text(digest)
    o = group_options(key=c_loc(k), digest=c_loc(d))
    if (present(timeout)) o%timeout = timeout
    if (present(memory)) o%memory = memory
    code = protect_buffers_start_f(comm, buffers, size(buffers), tolerate, parity, parity_bytes, o, request)
  end function

  ! Starts volley_recover_buffers, which goes on beside the caller. parity is c_loc of a target.
  integer function volley_recover_buffers_start(comm, buffers, lost, parity, parity_bytes, request, &
      timeout, memory, key) result(code)
    integer, intent(in) :: comm
    type(volley_buffer), intent(in) :: buffers(:)
    logical, intent(in) :: lost
    type(c_ptr), intent(in) :: parity
    integer(c_size_t), intent(in) :: parity_bytes
    integer, intent(out) :: request
    real(c_double), intent(in), optional :: timeout
    integer(c_size_t), intent(in), optional :: memory
    character(*), intent(in), optional :: key
    character(:), allocatable, target :: k
    type(group_options) :: o

    k = text(key)
    o = group_options(key=c_loc(k))
    if (present(timeout)) o%timeout = timeout
    if (present(memory)) o%memory = memory
    code = recover_buffers_start_f(comm, buffers, size(buffers), flag(lost), parity, parity_bytes, o, request)
  end function

  ! Says whether a request is done, and returns what it has come to.
  integer function volley_test(request, done) result(code)
    integer, intent(inout) :: request
    logical, intent(out) :: done
    integer(c_int) :: over

    code = c_test(request, over)
    done = over /= 0
  end function

  ! Waits for a request, and returns what it has come to.
  integer function volley_wait(request) result(code)
    integer, intent(inout) :: request
    code = c_wait(request)
  end function

  ! What went wrong in the last call in this thread, in one line; empty if nothing did.
  function volley_error() result(s)
    character(:), allocatable :: s
    s = string(c_error())
  end function

  ! The version of the library.
  function volley_version() result(s)
    character(:), allocatable :: s
    s = string(c_version())
  end function

  function text(s) result(c)
    character(*), intent(in), optional :: s
    character(:), allocatable :: c
    c = c_null_char
    if (present(s)) c = trim(s) // c_null_char
  end function

  function string(p) result(s)
    type(c_ptr), intent(in) :: p
    character(:), allocatable :: s
    character(c_char), pointer :: c(:)
    integer :: i
    call c_f_pointer(p, c, [strlen(p)])
    allocate (character(size(c)) :: s)
    do i = 1, size(c)
      s(i:i) = c(i)
    end do
  end function

  pure integer(c_int) function flag(b)
    logical, intent(in) :: b
    flag = merge(1, 0, b)
  end function
end module volley
