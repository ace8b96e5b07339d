! Calls of module volley, of what each returns and tells. With the argument protect or recover: for the directory
! node.RANK below the second argument.
module checks
  use volley
  implicit none
  integer :: rank, wrong = 0
contains
  subroutine expect(what, got, want, text)
    character(*), intent(in) :: what, text
    integer, intent(in) :: got, want
    if (got == want .and. (index(volley_error(), text) > 0 .or. text == "") .and. (want /= volley_ok .or. volley_error() == "")) return
    wrong = 1
    print "(a, i0, 3a, i0, a, i0, 5a)", "rank ", rank, ": ", what, ": returned ", got, ", want ", want, &
      '; error "', volley_error(), '", want "', text, '"'
  end subroutine

  ! The handle of MPI_COMM_WORLD in the module mpi.
  integer function world()
    use mpi, only: MPI_COMM_WORLD
    world = MPI_COMM_WORLD
  end function
end module

program calls
  use, intrinsic :: iso_c_binding, only: c_double, c_f_pointer, c_int8_t, c_loc, c_ptr, c_long_long, c_size_t
  use mpi_f08
  use checks
  implicit none
  character(4096) :: verb, dir
  integer :: size_of_world, threads

  call MPI_Init_thread(MPI_THREAD_MULTIPLE, threads)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_size(MPI_COMM_WORLD, size_of_world)
  call get_command_argument(1, verb)
  call get_command_argument(2, dir)
  if (verb == "") then
    call packets()
    call persistent()
    if (size_of_world > 1) call buffers()
  else if (verb == "snapshots") then
    call snapshots()
  else
    call directories()
  end if
  if (rank == 0) print "(2a)", "done with volley ", volley_version()
  call MPI_Finalize()
  if (wrong /= 0) error stop

contains

  subroutine packets()
    real(c_double) :: x(500, 3), back(500, 3), coded(500, 3), again(500, 3), every(1000, 3)
    integer(c_size_t) :: bytes
    integer :: first, code
    call random_number(x)
    bytes = storage_size(x) / 8 * size(x, kind=c_size_t)
    every = 0
    every(1::2, :) = x
    call expect("encode", volley_encode(MPI_COMM_WORLD%MPI_VAL, x, bytes, coded, bytes), volley_ok, "")
    call expect("all options", volley_encode(world(), every(1::2, :), bytes, again, bytes, field="2^8  ", matrix="cauchy", &
      algorithm="auto", ports=1, timeout=20d0, memory=100000000_c_size_t, unchecked=.false.), volley_ok, "")
    if (any(transfer(again, [0]) /= transfer(coded, [0]))) call expect("a section that is not contiguous", -1, 0, "")
    call expect("a network", volley_encode(world(), x, bytes, again, bytes, network="wan"), volley_ok, "")
    if (any(transfer(again, [0]) /= transfer(coded, [0]))) call expect("the same on another network", -1, 0, "")
    first = size_of_world / 2 ! as many as are needed are left
    back = merge(-1d0, x, rank >= first)
    if (rank < first) then
      code = volley_decode(world(), back, bytes, lost=.false., timeout=20d0)
    else
      code = volley_decode(world(), back, bytes, .true., coded, bytes, timeout=20d0)
    end if
    call expect("decode", code, volley_ok, "")
    if (any(back /= x)) call expect("the packet comes back", -1, 0, "")
    call expect("too few", volley_decode(world(), back, bytes, .true.), volley_usage, "packets")
    call expect("a wrong matrix", volley_encode(world(), x, bytes, coded, bytes, matrix="no such"), volley_usage, "no such")
    call expect("two models", volley_encode(world(), x, bytes, coded, bytes, ports=2, network="wan"), volley_usage, "leave one of them")
  end subroutine

  ! Rank 0 loses its buffers, which have other lengths at each rank.
  subroutine persistent()
    type(c_ptr) :: p, q
    real(c_double), pointer :: x(:, :), y(:, :)
    real(c_double) :: want(500, 3)
    integer(c_size_t) :: bytes
    integer :: request, run
    bytes = storage_size(want) / 8 * size(want, kind=c_size_t)
    call expect("alloc", volley_alloc(world(), bytes, p), volley_ok, "")
    call expect("alloc", volley_alloc(world(), bytes, q), volley_ok, "")
    call c_f_pointer(p, x, shape(want))
    call c_f_pointer(q, y, shape(want))
    call expect("init", volley_encode_init(world(), p, bytes, q, bytes, request, timeout=20d0), volley_ok, "")
    do run = 1, 3
      call random_number(x)
      call expect("encode", volley_encode(world(), x, bytes, want, bytes), volley_ok, "")
      call expect("run", volley_run(request), volley_ok, "")
      if (any(transfer(y, [0]) /= transfer(want, [0]))) call expect("a run is another encode", -1, 0, "")
      call MPI_Barrier(MPI_COMM_WORLD)
    end do
    call expect("memory in use", volley_free(p), volley_usage, "volley_request_free")
    call expect("request_free", volley_request_free(request), volley_ok, "")
    if (request /= volley_request_null) call expect("a freed request", request, volley_request_null, "")
    call expect("free", volley_free(p), volley_ok, "")
    call expect("free", volley_free(q), volley_ok, "")
  end subroutine

  subroutine buffers()
    real(c_double), allocatable, target :: x(:, :), back(:, :)
    integer, target :: small(3), small_back(3)
    integer(c_int8_t), allocatable, target :: parity(:), before(:)
    integer(c_size_t) :: bytes(2), sizes(2), room, found
    integer :: count, request
    type(volley_buffer) :: given(2), got(2)
    logical :: lost, done
    allocate (x(100 + rank, 5), back(100 + rank, 5))
    call random_number(x)
    small = [1, 2, 3] + rank
    bytes = [8_c_size_t * size(x), 12_c_size_t]
    given = [volley_buffer(c_loc(x), bytes(1)), volley_buffer(c_loc(small), bytes(2))]
    got = [volley_buffer(c_loc(back), bytes(1)), volley_buffer(c_loc(small_back), bytes(2))]
    call expect("parity_bytes", volley_parity_bytes(world(), given, 1, room, digest="sha256", timeout=20d0), volley_ok, "")
    allocate (parity(room))
    parity = 0
    call expect("protect buffers", volley_protect_buffers(world(), given, 1, parity, room, timeout=20d0, digest="sha256"), volley_ok, "")
    before = parity
    lost = rank == 0
    count = 2
    if (lost) then
      found = 0
      call expect("sizes of what is lost", volley_buffer_sizes(world(), found, sizes, count), volley_ok, "")
    else
      found = room
      call expect("sizes", volley_buffer_sizes(world(), found, sizes, count, parity, timeout=20d0), volley_ok, "")
    end if
    if (found /= room .or. count /= 2 .or. any(sizes /= bytes)) call expect("the sizes", -1, 0, "")
    back = merge(0d0, x, lost)
    small_back = merge(0, small, lost)
    if (lost) parity = 1
    call expect("recover buffers", volley_recover_buffers(world(), got, lost, parity, room, memory=100000000_c_size_t), volley_ok, "")
    if (any(back /= x) .or. any(small_back /= small) .or. any(parity /= before)) call expect("the buffers come back", -1, 0, "")

    call expect("start", volley_protect_buffers_start(world(), given, 1, c_loc(parity), room, request, digest="sha256"), volley_ok, "")
    done = .false.
    do while (.not. done)
      call expect("test", volley_test(request, done), volley_ok, "")
    end do
    if (request /= volley_request_null) call expect("a request that is over", request, volley_request_null, "")
    if (lost) back = 0
    call expect("start to recover", volley_recover_buffers_start(world(), got, lost, c_loc(parity), room, request), volley_ok, "")
    call expect("wait", volley_wait(request), volley_ok, "")
    if (any(back /= x)) call expect("the buffers come back by a request", -1, 0, "")
  end subroutine

  ! Snapshots below root.RANK, and sets; the argument is the directory of all.
  subroutine snapshots()
    character(:), allocatable :: root, path
    character(8) :: number
    character(:), allocatable :: domain
    integer(c_long_long), target :: step, done, total
    type(volley_report) :: report
    integer :: i, request, code
    write (number, "(i0)") rank
    root = trim(dir) // "/root." // trim(number)
    do i = 1, 3
      step = i
      call expect("step_path", volley_step_path(root, step, path), volley_ok, "")
      call write_file(path // "/state", int(step) * 10 + rank)
      call expect("protect a snapshot", volley_protect(world(), root, 1, step=step, retain=2), volley_ok, "")
    end do
    step = volley_latest
    call expect("status", volley_status(world(), root, report, step=step), volley_ok, "")
    if (step /= 3 .or. report%step /= 3 .or. report%nodes /= size_of_world .or. report%whole /= 1) &
      call expect("the report", int(report%step), 3, "")
    call MPI_Barrier(MPI_COMM_WORLD)
    if (rank == 0) call execute_command_line("rm -rf '" // root // "'")
    call MPI_Barrier(MPI_COMM_WORLD)
    step = volley_latest
    call expect("verify what is lost", volley_verify(world(), root, report, step=step), volley_wrong, "lost")
    if (report%lost /= 1 .or. report%recoverable /= 1) call expect("that one is lost", report%lost, 1, "")
    step = volley_latest
    call expect("start to recover", volley_recover_start(world(), root, request, step=step), volley_ok, "")
    call expect("progress", volley_progress(request, done, total), volley_ok, "")
    call expect("recover", volley_wait(request), volley_ok, "")
    if (step /= 3) call expect("the newest", int(step), 3, "")
    call read_file(root // "/step-3/state", 30 + rank)
    call expect("unprotect a root", volley_unprotect(world(), root, step=step), volley_usage, "step: ")
    call expect("unprotect", volley_unprotect(world(), root // "/step-3"), volley_ok, "")

    path = trim(dir) // "/set." // trim(number)
    call execute_command_line("mkdir -p '" // path // "'")
    call write_file(path // "/state", rank)
    write (number, "(i0)") rank / 2
    domain = "rack " // number
    code = volley_protect(world(), path, 1, set_size=2, domain=domain)
    call expect("protect sets", code, volley_ok, "")
    call expect("verify sets", volley_verify(world(), path, report, set_size=2, domain=domain), volley_ok, "")
    if (report%sets /= size_of_world / 2 .or. report%nodes /= 2) call expect("the sets", report%sets, size_of_world / 2, "")
    call MPI_Barrier(MPI_COMM_WORLD)
    if (rank < 2) call execute_command_line("rm -rf '" // path // "'")
    call MPI_Barrier(MPI_COMM_WORLD)
    call expect("recover sets", volley_recover(world(), path, set_size=2, domain=domain), volley_ok, "")
    call read_file(path // "/state", rank)
    call write_file(path // "/state", rank + 1)
    code = volley_protect_start(world(), path, 1, request, set_size=2, domain=domain)
    call expect("start sets", code, volley_ok, "")
    call expect("cancel", volley_cancel(request), volley_ok, "")
    code = volley_wait(request)
    if (code /= volley_ok) call expect("which may be too late", code, volley_cancelled, "cancelled")
  end subroutine

  subroutine write_file(path, number)
    character(*), intent(in) :: path
    integer, intent(in) :: number
    integer :: unit, i
    open (newunit=unit, file=path, form="unformatted", access="stream", status="replace")
    write (unit) [(number + i, i = 1, 3000)]
    close (unit)
  end subroutine

  subroutine read_file(path, number)
    character(*), intent(in) :: path
    integer, intent(in) :: number
    integer :: unit, i, back(3000), code
    back = 0
    open (newunit=unit, file=path, form="unformatted", access="stream", status="old", iostat=code)
    if (code == 0) read (unit, iostat=code) back
    if (code /= 0 .or. any(back /= [(number + i, i = 1, 3000)])) call expect("the file " // path // " comes back", -1, 0, "")
    if (code == 0) close (unit)
  end subroutine

  subroutine directories()
    character(:), allocatable :: path
    character(8) :: number
    real(c_double) :: x(2000), back(2000)
    integer :: unit, request
    x = [(rank + sqrt(real(unit, c_double)), unit = 1, size(x))]
    write (number, "(i0)") rank
    path = trim(dir) // "/node." // trim(number)
    if (verb == "protect") then
      open (newunit=unit, file=path // "/state", form="unformatted", access="stream", status="replace")
      write (unit) x
      close (unit)
      call expect("not yet protected", volley_recover(world(), path), volley_none, "not protected")
      call expect("protect", volley_protect(world(), path // "  ", 1, timeout=20d0, memory=100000000_c_size_t, digest="xxh3"), volley_ok, "")
      call expect("protect again", volley_protect_start(MPI_COMM_WORLD%MPI_VAL, path, 1, request, key="none"), volley_ok, "")
      call expect("wait", volley_wait(request), volley_ok, "")
    else
      call expect("recover", volley_recover(world(), path, timeout=20d0), volley_ok, "")
      open (newunit=unit, file=path // "/state", form="unformatted", access="stream", status="old")
      read (unit) back
      close (unit)
      if (any(back /= x)) call expect("the file comes back", -1, 0, "")
    end if
  end subroutine
end program
