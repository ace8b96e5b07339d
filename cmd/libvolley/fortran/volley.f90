! Volley for Fortran programs that use MPI: module volley has the functions of volley.h, which describes them.
!
!   mpif90 -o program volley.f90 program.f90 -lvolley
!
! comm is the handle of a communicator: an integer, or comm%MPI_VAL with mpi_f08. Packets are of any type and rank, and
! their lengths are in bytes: storage_size(x) / 8 * size(x, kind=c_size_t). An option that is absent has the default of
! volley.h. Blanks at the end of text are left out.
module volley
  use, intrinsic :: iso_c_binding, only: c_char, c_double, c_f_pointer, c_int, c_loc, c_null_char, c_null_ptr, c_ptr, c_size_t
  implicit none
  private
  public :: volley_encode, volley_decode, volley_protect, volley_recover, volley_error, volley_version

  ! What the functions return: volley_ok, or what kind of error volley_error tells.
  integer, parameter, public :: volley_ok = 0, volley_failed = 1, volley_usage = 2, volley_wrong = 3

  type, bind(c) :: options ! volley_options
    type(c_ptr) :: field = c_null_ptr, matrix = c_null_ptr, algorithm = c_null_ptr
    integer(c_int) :: ports = 0
    real(c_double) :: timeout = 0
    integer(c_size_t) :: memory = 0
    integer(c_int) :: unchecked = 0
    integer(c_size_t) :: packet_bytes = 0
    type(c_ptr) :: network = c_null_ptr
  end type

  type, bind(c) :: group_options ! volley_group_options
    real(c_double) :: timeout = 0
    integer(c_size_t) :: memory = 0
    real(c_double) :: max_deleted = 0
    integer(c_int) :: allow_deleted = 0, revert = 0
    type(c_ptr) :: believe = c_null_ptr, key = c_null_ptr, digest = c_null_ptr
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
      field, matrix, algorithm, ports, timeout, memory, unchecked, packet_bytes, network) result(code)
    integer, intent(in) :: comm
    type(*), contiguous, target, intent(in) :: packet(..)
    type(*), contiguous, target, intent(inout) :: coded(..)
    integer(c_size_t), intent(in) :: bytes, coded_bytes
    character(*), intent(in), optional :: field, matrix, algorithm, network
    integer, intent(in), optional :: ports
    real(c_double), intent(in), optional :: timeout
    integer(c_size_t), intent(in), optional :: memory, packet_bytes
    logical, intent(in), optional :: unchecked
    character(:), allocatable, target :: f, m, a, n
    type(options) :: o

    f = text(field); m = text(matrix); a = text(algorithm); n = text(network)
    o = options(field=c_loc(f), matrix=c_loc(m), algorithm=c_loc(a), network=c_loc(n))
    if (present(ports)) o%ports = ports
    if (present(timeout)) o%timeout = timeout
    if (present(memory)) o%memory = memory
    if (present(unchecked)) o%unchecked = flag(unchecked)
    if (present(packet_bytes)) o%packet_bytes = packet_bytes
    code = encode_f(comm, c_loc(packet), bytes, c_loc(coded), coded_bytes, o)
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

  ! Protects path, the directory of this process's node.
  integer function volley_protect(comm, path, tolerate, &
      timeout, memory, max_deleted, allow_deleted, believe, key, digest) result(code)
    integer, intent(in) :: comm, tolerate
    character(*), intent(in) :: path
    real(c_double), intent(in), optional :: timeout, max_deleted
    integer(c_size_t), intent(in), optional :: memory
    logical, intent(in), optional :: allow_deleted
    character(*), intent(in), optional :: believe, key, digest
    character(:), allocatable, target :: b, k, d
    type(group_options) :: o

    b = text(believe); k = text(key); d = text(digest)
    o = group_options(believe=c_loc(b), key=c_loc(k), digest=c_loc(d))
    if (present(timeout)) o%timeout = timeout
    if (present(memory)) o%memory = memory
    if (present(max_deleted)) o%max_deleted = max_deleted
    if (present(allow_deleted)) o%allow_deleted = flag(allow_deleted)
    code = protect_f(comm, text(path), tolerate, o)
  end function

  ! Brings back what is lost or damaged of a group; path is the directory of this process's node.
  integer function volley_recover(comm, path, timeout, memory, revert, believe, key) result(code)
    integer, intent(in) :: comm
    character(*), intent(in) :: path
    real(c_double), intent(in), optional :: timeout
    integer(c_size_t), intent(in), optional :: memory
    logical, intent(in), optional :: revert
    character(*), intent(in), optional :: believe, key
    character(:), allocatable, target :: b, k
    type(group_options) :: o

    b = text(believe); k = text(key)
    o = group_options(believe=c_loc(b), key=c_loc(k))
    if (present(timeout)) o%timeout = timeout
    if (present(memory)) o%memory = memory
    if (present(revert)) o%revert = flag(revert)
    code = recover_f(comm, text(path), o)
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
