! Each process has a field and a step number in memory. They survive the loss of one process: rank 0 forgets all that it
! has, and gets it back from the others.
!
!   mpif90 -o buffers buffers.f90 $(pkg-config --cflags --libs volley-fortran)
!   mpirun -n 4 ./buffers
program buffers
  use, intrinsic :: iso_c_binding, only: c_int8_t, c_loc, c_size_t
  use mpi_f08
  use volley
  implicit none
  real(8), allocatable, target :: field(:, :)
  integer, target :: step(1)
  integer(c_int8_t), allocatable, target :: parity(:)
  integer(c_size_t) :: room, bytes(2)
  type(volley_buffer) :: list(2)
  integer :: comm, rank, count, request, threads
  logical :: lost

  call MPI_Init_thread(MPI_THREAD_MULTIPLE, threads)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  comm = MPI_COMM_WORLD%MPI_VAL ! with "use mpi" it is MPI_COMM_WORLD itself
  allocate (field(1000, 100 + rank))
  field = rank + 0.5d0
  step = 1

  ! What is protected has the attribute target, and lengths are in bytes.
  bytes = [size(field, kind=c_size_t) * storage_size(field) / 8, size(step, kind=c_size_t) * storage_size(step) / 8]
  list = [volley_buffer(c_loc(field), bytes(1)), volley_buffer(c_loc(step), bytes(2))]
  call check(volley_parity_bytes(comm, list, 1, room)) ! once, as long as the lengths are the same
  allocate (parity(room))
  call check(volley_protect_buffers(comm, list, 1, parity, room)) ! the array itself

  ! The same beside the computation, where MPI lets several threads call it. Parity is given by its address, as the
  ! compiler might copy the array for the call.
  if (threads >= MPI_THREAD_MULTIPLE) then
    call check(volley_protect_buffers_start(comm, list, 1, c_loc(parity), room, request))
    call check(volley_wait(request))
  end if

  lost = rank == 0
  if (lost) deallocate (field, parity)

  ! At a restart: who has lost all asks how long it was.
  count = 2
  if (lost) then
    call check(volley_buffer_sizes(comm, room, bytes, count))
    allocate (field(1000, bytes(1) / 1000 / 8), parity(room))
    field = 0
    step = 0
    parity = 0
    list = [volley_buffer(c_loc(field), bytes(1)), volley_buffer(c_loc(step), bytes(2))]
  else
    call check(volley_buffer_sizes(comm, room, bytes, count, parity))
  end if
  call check(volley_recover_buffers(comm, list, lost, parity, room))
  if (any(field /= rank + 0.5d0) .or. step(1) /= 1) error stop "this is not what was protected"
  if (rank == 0) print "(a)", "the field is back"
  call MPI_Finalize()

contains

  subroutine check(code)
    integer, intent(in) :: code
    if (code == volley_ok) return
    print "(2a)", "volley: ", volley_error()
    call MPI_Abort(MPI_COMM_WORLD, code)
  end subroutine
end program
