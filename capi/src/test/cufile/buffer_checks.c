// Registration of memory.
#include "suite.h"

static void simple(void) {
  void *buffer = allocate(MIB);
  SUCCEEDS("register", cufile.BufRegister(buffer, MIB, 0));
  SUCCEEDS("deregister", cufile.BufDeregister(buffer));
  SUCCEEDS("register-again", cufile.BufRegister(buffer, MIB, 0));
  SUCCEEDS("deregister-again", cufile.BufDeregister(buffer));
  static const size_t sizes[] = {4096, 16384, 65536, 131072, 16 * MIB};
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    void *one = allocate(sizes[i]);
    SUCCEEDS(text("%zu", sizes[i]), cufile.BufRegister(one, sizes[i], 0));
    SUCCEEDS(text("%zu-deregister", sizes[i]), cufile.BufDeregister(one));
    release(one);
  }
}

static void twice(void) {
  void *buffer = allocate(MIB);
  SUCCEEDS("once", cufile.BufRegister(buffer, MIB, 0));
  is_error("twice", cufile.BufRegister(buffer, MIB, 0), CU_FILE_MEMORY_ALREADY_REGISTERED);
  observe("twice-smaller", error_text(cufile.BufRegister(buffer, MIB / 2, 0)));
  SUCCEEDS("deregister", cufile.BufDeregister(buffer));
}

static void overlapping(void) {
  char *buffer = allocate(4 * MIB);
  SUCCEEDS("first", cufile.BufRegister(buffer, 2 * MIB, 0));
  observe("inside", error_text(cufile.BufRegister(buffer + MIB, MIB, 0)));
  observe("across-its-end", error_text(cufile.BufRegister(buffer + MIB + MIB / 2, MIB, 0)));
  observe("behind", error_text(cufile.BufRegister(buffer + 3 * MIB, MIB, 0)));
}

static void bad(void) {
  char *buffer = allocate(MIB);
  is_error("null", cufile.BufRegister(NULL, 4096, 0), CU_FILE_INVALID_VALUE);
  is_error("no-length", cufile.BufRegister(buffer, 0, 0), CU_FILE_INVALID_VALUE);
  is_error("null-deregister", cufile.BufDeregister(NULL), CU_FILE_INVALID_VALUE);
  ONE_OF("unknown-deregister", cufile.BufDeregister(buffer), CU_FILE_INVALID_VALUE, CU_FILE_MEMORY_NOT_REGISTERED);
  observe("unknown-deregister-code", error_text(cufile.BufDeregister(buffer)));
  SUCCEEDS("register", cufile.BufRegister(buffer, MIB, 0));
  observe("deregister-inside", error_text(cufile.BufDeregister(buffer + 4096)));
  SUCCEEDS("deregister", cufile.BufDeregister(buffer));
  ONE_OF("deregister-twice", cufile.BufDeregister(buffer), CU_FILE_INVALID_VALUE, CU_FILE_MEMORY_NOT_REGISTERED);
}

static void flags(void) {
  void *buffer = allocate(MIB);
  static const int all[] = {CU_FILE_RDMA_REGISTER, CU_FILE_RDMA_RELAXED_ORDERING, CU_FILE_RDMA_REGISTER | CU_FILE_RDMA_RELAXED_ORDERING, 4, 999, -1};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
    CUfileError_t error = cufile.BufRegister(buffer, MIB, all[i]);
    observe(text("flags-%d", all[i]), error_text(error));
    if (error.err == CU_FILE_SUCCESS) {
      cufile.BufDeregister(buffer);
    }
  }
}

static void lengths(void) {
  char *buffer = allocate(MIB);
  static const struct {
    size_t at, size;
  } odd[] = {{0, 1}, {0, 4097}, {1, 4096}, {4096, 4096}, {512, 65536}, {65536, 65536}};
  for (size_t i = 0; i < sizeof odd / sizeof *odd; i++) {
    CUfileError_t error = cufile.BufRegister(buffer + odd[i].at, odd[i].size, 0);
    observe(text("at-%zu-size-%zu", odd[i].at, odd[i].size), error_text(error));
    if (error.err == CU_FILE_SUCCESS) {
      SUCCEEDS(text("at-%zu-size-%zu-deregister", odd[i].at, odd[i].size), cufile.BufDeregister(buffer + odd[i].at));
    }
  }
}

static void beyond(void) {
  void *buffer = allocate(2 * MIB);
  observe("twice-its-size", error_text(cufile.BufRegister(buffer, 64 * MIB, 0)));
  observe("everything", error_text(cufile.BufRegister(buffer, SIZE_MAX, 0)));
}

static void not_mapped(void) {
  observe("register", error_text(cufile.BufRegister((void *)0x123456789000, 4096, 0)));
}

static void pinned_host(void) {
  void *buffer = NULL;
  if (cuda.MemHostAlloc == NULL || cuda.MemHostAlloc(&buffer, MIB, 0) != 0) {
    give_up("no pinned memory");
  }
  SUCCEEDS("register", cufile.BufRegister(buffer, MIB, 0));
  CUfileHandle_t handle = handle_of(new_file("file", O_RDWR, 1, MIB));
  is_transferred("read", TRANSFER(cufile.Read(handle, buffer, MIB, 0, 0)), MIB);
  is_pattern("data", buffer, 1, 0, MIB);
  SUCCEEDS("deregister", cufile.BufDeregister(buffer));
}

static void managed(void) {
  cuda_address address = 0;
  if (cuda.MemAllocManaged == NULL || cuda.MemAllocManaged(&address, MIB, 1) != 0) {
    give_up("no managed memory");
  }
  observe("register", error_text(cufile.BufRegister((void *)address, MIB, 0)));
  CUfileHandle_t handle = handle_of(new_file("file", O_RDWR, 1, MIB));
  observe_transferred("read", TRANSFER(cufile.Read(handle, (void *)address, MIB, 0, 0)));
}

static void many(void) {
  enum { COUNT = 128 };
  void *buffers[COUNT];
  int failed = 0;
  for (int i = 0; i < COUNT; i++) {
    buffers[i] = allocate(65536);
    failed += cufile.BufRegister(buffers[i], 65536, 0).err != CU_FILE_SUCCESS;
  }
  is_number("128-at-once", failed, 0);
  failed = 0;
  for (int i = COUNT - 1; i >= 0; i--) {
    failed += cufile.BufDeregister(buffers[i]).err != CU_FILE_SUCCESS;
  }
  is_number("128-deregistered", failed, 0);
}

static void stays_usable(void) {
  void *buffer = allocate(MIB);
  CUfileHandle_t handle = handle_of(new_file("file", O_RDWR, 1, MIB));
  SUCCEEDS("register", cufile.BufRegister(buffer, MIB, 0));
  SUCCEEDS("deregister", cufile.BufDeregister(buffer));
  is_transferred("read-after-deregister", TRANSFER(cufile.Read(handle, buffer, MIB, 0, 0)), MIB);
  is_pattern("data", buffer, 1, 0, MIB);
}

const struct group buffer_groups[] = {
    {"buffer.simple", "register and deregister, sizes", simple, USES_MEMORY, NULL},
    {"buffer.twice", "one buffer twice", twice, USES_MEMORY, NULL},
    {"buffer.overlapping", "buffers that overlap", overlapping, USES_MEMORY, NULL},
    {"buffer.bad", "null, no length, what is not registered", bad, USES_MEMORY, NULL},
    {"buffer.flags", "flags", flags, USES_MEMORY, NULL},
    {"buffer.lengths", "unaligned places and lengths", lengths, USES_MEMORY, NULL},
    {"buffer.beyond", "more than the allocation", beyond, USES_MEMORY | MAY_CRASH, NULL},
    {"buffer.not-mapped", "an address where nothing is", not_mapped, MAY_CRASH, NULL},
    {"buffer.pinned-host", "host memory that CUDA pinned", pinned_host, USES_CUDA, NULL},
    {"buffer.managed", "managed memory", managed, USES_CUDA, NULL},
    {"buffer.many", "128 at once", many, USES_MEMORY, NULL},
    {"buffer.stays-usable", "memory after its deregistration", stays_usable, USES_MEMORY, NULL},
    {0},
};
