// cuFileRead and cuFileWrite.
#include "suite.h"

#include <sys/mman.h>

enum { SIZE = 1 << 20 };

// Both ways of opening a file, with and without O_DIRECT. False where O_DIRECT cannot be.
static bool open_both(int direct, CUfileHandle_t *handle, size_t size) {
  int fd = new_file(direct ? "direct" : "cached", O_RDWR | (direct ? O_DIRECT : 0), 1, size);
  if (fd < 0 && direct) {
    skip("direct", "this file system has no O_DIRECT");
    return false;
  }
  *handle = handle_of(fd);
  return true;
}

static const char *const ways[] = {"cached", "direct"};

static void read_aligned(void) {
  for (int direct = 0; direct < 2; direct++) {
    CUfileHandle_t handle;
    if (!open_both(direct, &handle, 4 * SIZE)) {
      continue;
    }
    static const size_t sizes[] = {4096, 65536, SIZE, 4 * SIZE};
    for (int registered = 0; registered < 2; registered++) {
      char *buffer = allocate(4 * SIZE);
      if (registered) {
        SUCCEEDS(text("%s-register", ways[direct]), cufile.BufRegister(buffer, 4 * SIZE, 0));
      }
      for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        const char *id = text("%s-%s-%zu", ways[direct], registered ? "registered" : "plain", sizes[i]);
        is_transferred(id, TRANSFER(cufile.Read(handle, buffer, sizes[i], 0, 0)), (ssize_t)sizes[i]);
        is_pattern(text("%s-data", id), buffer, 1, 0, sizes[i]);
        fill(buffer, 0, sizes[i]);
      }
    }
  }
}

static void read_unaligned(void) {
  static const struct {
    const char *name;
    size_t size;
    off_t file, buffer;
  } odd[] = {
      {"file-1", 4096, 1, 0},           {"file-511", 65536, 511, 0},     {"file-512", 65536, 512, 0},   {"file-4095", 8192, 4095, 0},
      {"size-1", 1, 4096, 0},           {"size-511", 511, 0, 0},         {"size-4097", 4097, 0, 0},     {"size-million", 999999, 0, 0},
      {"buffer-1", 4096, 0, 1},         {"buffer-512", 65536, 4096, 512}, {"buffer-4095", 4096, 8192, 4095},
      {"file-and-size", 12345, 777, 0}, {"all", 54321, 4097, 333},       {"all-same-shift", 8192, 100, 100},
  };
  for (int direct = 0; direct < 2; direct++) {
    CUfileHandle_t handle;
    if (!open_both(direct, &handle, 2 * SIZE)) {
      continue;
    }
    for (int registered = 0; registered < 2; registered++) {
      char *buffer = allocate(2 * SIZE);
      if (registered) {
        SUCCEEDS(text("%s-register", ways[direct]), cufile.BufRegister(buffer, 2 * SIZE, 0));
      }
      for (size_t i = 0; i < sizeof odd / sizeof *odd; i++) {
        const char *id = text("%s-%s-%s", ways[direct], registered ? "registered" : "plain", odd[i].name);
        fill(buffer, 0xEE, 2 * SIZE);
        is_transferred(id, TRANSFER(cufile.Read(handle, buffer, odd[i].size, odd[i].file, odd[i].buffer)), (ssize_t)odd[i].size);
        is_pattern(text("%s-data", id), buffer + odd[i].buffer, 1, (size_t)odd[i].file, odd[i].size);
        bool kept = has_byte(buffer, 0xEE, (size_t)odd[i].buffer) && has_byte(buffer + odd[i].buffer + odd[i].size, 0xEE, 8192);
        is_true(text("%s-around", id), kept, "nothing around it is touched", kept ? "nothing around it is touched" : "touched");
      }
    }
  }
}

static void read_unaligned_pointer(void) {
  CUfileHandle_t handle = handle_of(new_file("file", O_RDWR, 1, SIZE));
  char *buffer = allocate(2 * SIZE);
  static const int shifts[] = {1, 7, 64, 512, 4095};
  for (size_t i = 0; i < sizeof shifts / sizeof *shifts; i++) {
    is_transferred(text("plus-%d", shifts[i]), TRANSFER(cufile.Read(handle, buffer + shifts[i], 65536, 4096, 0)), 65536);
    is_pattern(text("plus-%d-data", shifts[i]), buffer + shifts[i], 1, 4096, 65536);
  }
}

static void read_end(void) {
  for (int direct = 0; direct < 2; direct++) {
    CUfileHandle_t handle;
    if (!open_both(direct, &handle, SIZE + 100)) {
      continue;
    }
    char *buffer = allocate(2 * SIZE);
    const char *way = ways[direct];
    fill(buffer, 0xEE, 2 * SIZE);
    is_transferred(text("%s-straddling", way), TRANSFER(cufile.Read(handle, buffer, 2 * SIZE, 0, 0)), SIZE + 100);
    is_pattern(text("%s-straddling-data", way), buffer, 1, 0, SIZE + 100);
    observe(text("%s-behind-the-end", way), has_byte(buffer + SIZE + 100, 0xEE, 4096) ? "untouched" : "touched");
    is_transferred(text("%s-last-100", way), TRANSFER(cufile.Read(handle, buffer, 4096, SIZE, 0)), 100);
    is_transferred(text("%s-last-byte", way), TRANSFER(cufile.Read(handle, buffer, 4096, SIZE + 99, 0)), 1);
    is_transferred(text("%s-at-the-end", way), TRANSFER(cufile.Read(handle, buffer, 4096, SIZE + 100, 0)), 0);
    is_transferred(text("%s-past-the-end", way), TRANSFER(cufile.Read(handle, buffer, 4096, 4 * SIZE, 0)), 0);
    is_transferred(text("%s-far-past-the-end", way), TRANSFER(cufile.Read(handle, buffer, 4096, (off_t)1 << 40, 0)), 0);
  }
}

static void read_empty(void) {
  CUfileHandle_t handle = handle_of(new_file("file", O_RDWR, 1, 0));
  void *buffer = allocate(4096);
  is_transferred("read", TRANSFER(cufile.Read(handle, buffer, 4096, 0, 0)), 0);
}

static void zero_size(void) {
  CUfileHandle_t handle = handle_of(new_file("file", O_RDWR, 1, 4096));
  void *buffer = allocate(4096);
  observe_transferred("read", TRANSFER(cufile.Read(handle, buffer, 0, 0, 0)));
  observe_transferred("write", TRANSFER(cufile.Write(handle, buffer, 0, 0, 0)));
  is_number("file-unchanged", file_has("file", 1, 0, 4096), 1);
}

static void negative(void) {
  CUfileHandle_t handle = handle_of(new_file("file", O_RDWR, 1, 65536));
  char *buffer = allocate(65536);
  struct transferred got = TRANSFER(cufile.Read(handle, buffer, 4096, -1, 0));
  is_refused("read-file-offset", got);
  observe_transferred("read-file-offset-code", got);
  got = TRANSFER(cufile.Write(handle, buffer, 4096, -4096, 0));
  is_refused("write-file-offset", got);
  observe_transferred("write-file-offset-code", got);
  is_number("file-unchanged", file_has("file", 1, 0, 65536), 1);
  observe_transferred("read-buffer-offset", TRANSFER(cufile.Read(handle, buffer + 8192, 4096, 0, -4096)));
}

static void null_buffer(void) {
  CUfileHandle_t handle = handle_of(new_file("file", O_RDWR, 1, 65536));
  struct transferred got = TRANSFER(cufile.Read(handle, NULL, 4096, 0, 0));
  is_refused("read", got);
  observe_transferred("read-code", got);
  got = TRANSFER(cufile.Write(handle, NULL, 4096, 0, 0));
  is_refused("write", got);
  observe_transferred("write-code", got);
}

static void bad_buffer(void) {
  CUfileHandle_t handle = handle_of(new_file("file", O_RDWR, 1, 65536));
  observe_transferred("read", TRANSFER(cufile.Read(handle, (void *)0x123456789000, 4096, 0, 0)));
}

static void huge(void) {
  CUfileHandle_t handle = handle_of(new_file("file", O_RDWR, 1, 65536));
  void *buffer = allocate(SIZE);
  SUCCEEDS("register", cufile.BufRegister(buffer, SIZE, 0));
  observe_transferred("read-more-than-registered", TRANSFER(cufile.Read(handle, buffer, (size_t)1 << 40, 0, 0)));
  observe_transferred("read-everything", TRANSFER(cufile.Read(handle, buffer, SIZE_MAX, 0, 0)));
  observe_transferred("read-offset-max", TRANSFER(cufile.Read(handle, buffer, 4096, INT64_MAX, 0)));
}

static void registered_offsets(void) {
  CUfileHandle_t handle = handle_of(new_file("file", O_RDWR, 1, SIZE));
  char *buffer = allocate(SIZE);
  SUCCEEDS("register", cufile.BufRegister(buffer, SIZE, 0));
  for (size_t at = 0; at < SIZE; at += 256 * 1024) {
    is_transferred(text("read-at-%zu", at), TRANSFER(cufile.Read(handle, buffer, 65536, (off_t)at, (off_t)at)), 65536);
    is_pattern(text("data-at-%zu", at), buffer + at, 1, at, 65536);
  }
  is_transferred("read-of-inner-pointer", TRANSFER(cufile.Read(handle, buffer + 8192, 65536, 4096, 0)), 65536);
  is_pattern("inner-pointer-data", buffer + 8192, 1, 4096, 65536);
  is_transferred("inner-pointer-and-offset", TRANSFER(cufile.Read(handle, buffer + 8192, 65536, 4096, 4096)), 65536);
  is_pattern("inner-pointer-and-offset-data", buffer + 12288, 1, 4096, 65536);
  is_transferred("to-the-last-byte", TRANSFER(cufile.Read(handle, buffer, 4096, 0, SIZE - 4096)), 4096);
}

static void past_registered(void) {
  CUfileHandle_t handle = handle_of(new_file("file", O_RDWR, 1, SIZE));
  char *buffer = allocate(SIZE);
  SUCCEEDS("register", cufile.BufRegister(buffer, SIZE / 2, 0));
  observe_transferred("straddling-its-end", TRANSFER(cufile.Read(handle, buffer, 65536, 0, SIZE / 2 - 4096)));
  observe_transferred("behind-its-end", TRANSFER(cufile.Read(handle, buffer, 65536, 0, SIZE / 2 + 4096)));
  observe_transferred("larger-than-it", TRANSFER(cufile.Read(handle, buffer, SIZE, 0, 0)));
}

static void write_aligned(void) {
  for (int direct = 0; direct < 2; direct++) {
    CUfileHandle_t handle;
    if (!open_both(direct, &handle, SIZE)) {
      continue;
    }
    for (int registered = 0; registered < 2; registered++) {
      char *buffer = allocate(SIZE);
      if (registered) {
        SUCCEEDS(text("%s-register", ways[direct]), cufile.BufRegister(buffer, SIZE, 0));
      }
      static const size_t sizes[] = {4096, 65536, SIZE};
      for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        uint32_t seed = 10 + (uint32_t)(registered * 3 + (int)i);
        const char *id = text("%s-%s-%zu", ways[direct], registered ? "registered" : "plain", sizes[i]);
        put_pattern(buffer, seed, 0, sizes[i]);
        is_transferred(id, TRANSFER(cufile.Write(handle, buffer, sizes[i], 0, 0)), (ssize_t)sizes[i]);
        is_number(text("%s-file", id), file_has(ways[direct], seed, 0, sizes[i]), 1);
      }
    }
  }
}

static void write_unaligned(void) {
  static const struct {
    const char *name;
    size_t size;
    off_t file, buffer;
  } odd[] = {
      {"file-1", 4096, 1, 0},    {"size-1", 1, 8192, 0},         {"size-4097", 4097, 4096, 0},       {"buffer-1", 4096, 4096, 1},
      {"file-511", 512, 511, 0}, {"file-and-size", 9999, 99, 0}, {"all", 54321, 4097, 333}, {"all-same-shift", 8192, 100, 100},
  };
  for (int direct = 0; direct < 2; direct++) {
    for (size_t i = 0; i < sizeof odd / sizeof *odd; i++) {
      CUfileHandle_t handle;
      if (!open_both(direct, &handle, SIZE)) {
        break;
      }
      char *buffer = allocate(SIZE);
      const char *id = text("%s-%s", ways[direct], odd[i].name);
      put_pattern(buffer + odd[i].buffer, 2, (size_t)odd[i].file, odd[i].size);
      is_transferred(id, TRANSFER(cufile.Write(handle, buffer, odd[i].size, odd[i].file, odd[i].buffer)), (ssize_t)odd[i].size);
      is_number(text("%s-file", id), file_has(ways[direct], 2, (size_t)odd[i].file, odd[i].size), 1);
      size_t end = (size_t)odd[i].file + odd[i].size;
      bool kept = file_has(ways[direct], 1, 0, (size_t)odd[i].file) && file_has(ways[direct], 1, end, SIZE - end);
      is_true(text("%s-around", id), kept, "the file is unchanged around it", kept ? "the file is unchanged around it" : "changed");
      cufile.HandleDeregister(handle);
    }
  }
}

static void write_extends(void) {
  for (int direct = 0; direct < 2; direct++) {
    CUfileHandle_t handle;
    if (!open_both(direct, &handle, 4096)) {
      continue;
    }
    const char *way = ways[direct];
    struct stat status;
    char *buffer = allocate(65536);
    put_pattern(buffer, 1, 4096, 65536);
    is_transferred(text("%s-append", way), TRANSFER(cufile.Write(handle, buffer, 65536, 4096, 0)), 65536);
    stat(way, &status);
    is_number(text("%s-size", way), status.st_size, 4096 + 65536);
    is_number(text("%s-data", way), file_has(way, 1, 0, 4096 + 65536), 1);
    put_pattern(buffer, 1, SIZE, 65536);
    is_transferred(text("%s-with-a-hole", way), TRANSFER(cufile.Write(handle, buffer, 65536, SIZE, 0)), 65536);
    stat(way, &status);
    is_number(text("%s-size-with-a-hole", way), status.st_size, SIZE + 65536);
    is_number(text("%s-data-behind-the-hole", way), file_has(way, 1, SIZE, 65536), 1);
    is_transferred(text("%s-read-hole", way), TRANSFER(cufile.Read(handle, buffer, 65536, 2 * 65536, 0)), 65536);
    is_byte(text("%s-hole-is-zero", way), buffer, 0, 65536);
    put_pattern(buffer, 1, SIZE + 65536, 100);
    is_transferred(text("%s-odd-tail", way), TRANSFER(cufile.Write(handle, buffer, 100, SIZE + 65536, 0)), 100);
    stat(way, &status);
    is_number(text("%s-odd-size", way), status.st_size, SIZE + 65536 + 100);
  }
}

static void sparse(void) {
  int fd = new_file("file", O_RDWR, 1, 0);
  if (ftruncate(fd, 64 * MIB) != 0) {
    give_up("no sparse file");
  }
  CUfileHandle_t handle = handle_of(fd);
  char *buffer = allocate(SIZE);
  fill(buffer, 0xEE, SIZE);
  is_transferred("hole", TRANSFER(cufile.Read(handle, buffer, SIZE, 32 * MIB, 0)), SIZE);
  is_byte("hole-is-zero", buffer, 0, SIZE);
  is_transferred("unaligned-hole", TRANSFER(cufile.Read(handle, buffer, 9999, 3333, 1)), 9999);
  is_transferred("end", TRANSFER(cufile.Read(handle, buffer, SIZE, 64 * MIB - 4096, 0)), 4096);
}

static void truncated(void) {
  int fd = new_file("file", O_RDWR, 1, SIZE);
  CUfileHandle_t handle = handle_of(fd);
  char *buffer = allocate(SIZE);
  is_transferred("before", TRANSFER(cufile.Read(handle, buffer, SIZE, 0, 0)), SIZE);
  if (ftruncate(fd, 10000) != 0) {
    give_up("no truncation");
  }
  is_transferred("shorter", TRANSFER(cufile.Read(handle, buffer, SIZE, 0, 0)), 10000);
  is_transferred("behind", TRANSFER(cufile.Read(handle, buffer, 4096, 65536, 0)), 0);
  if (ftruncate(fd, SIZE) != 0) {
    give_up("no truncation");
  }
  is_transferred("longer", TRANSFER(cufile.Read(handle, buffer, SIZE, 0, 0)), SIZE);
  is_byte("zeros-behind", buffer + 10000, 0, SIZE - 10000);
  is_pattern("data-before", buffer, 1, 0, 10000);
}

static void coherent(void) {
  for (int direct = 0; direct < 2; direct++) {
    CUfileHandle_t handle;
    if (!open_both(direct, &handle, SIZE)) {
      continue;
    }
    const char *way = ways[direct];
    int fd = open(way, O_RDWR);
    char *buffer = allocate(SIZE), *bytes = malloc(SIZE);
    pattern(bytes, 3, 0, SIZE);
    is_number(text("%s-pwrite", way), pwrite(fd, bytes, SIZE, 0), SIZE);
    is_transferred(text("%s-read-after-pwrite", way), TRANSFER(cufile.Read(handle, buffer, SIZE, 0, 0)), SIZE);
    is_pattern(text("%s-read-after-pwrite-data", way), buffer, 3, 0, SIZE);
    put_pattern(buffer, 4, 0, SIZE);
    is_transferred(text("%s-write", way), TRANSFER(cufile.Write(handle, buffer, SIZE, 0, 0)), SIZE);
    is_number(text("%s-pread-after-write", way), file_has(way, 4, 0, SIZE), 1);
    char *mapped = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (mapped == MAP_FAILED) {
      skip(text("%s-mmap", way), "no mmap of this file");
      continue;
    }
    is_number(text("%s-mmap-after-write", way), (uint8_t)mapped[12345], pattern_at(4, 12345));
    pattern(mapped, 5, 0, SIZE);
    is_transferred(text("%s-read-after-mmap-store", way), TRANSFER(cufile.Read(handle, buffer, SIZE, 0, 0)), SIZE);
    is_pattern(text("%s-read-after-mmap-store-data", way), buffer, 5, 0, SIZE);
    put_pattern(buffer, 6, 0, 4096);
    is_transferred(text("%s-write-mapped", way), TRANSFER(cufile.Write(handle, buffer, 4096, 8192, 0)), 4096);
    is_number(text("%s-mmap-sees-it", way), (uint8_t)mapped[8192], pattern_at(6, 0));
    munmap(mapped, SIZE);
    free(bytes);
  }
}

static void position(void) {
  int fd = new_file("file", O_RDWR, 1, 65536);
  CUfileHandle_t handle = handle_of(fd);
  void *buffer = allocate(4096);
  lseek(fd, 1234, SEEK_SET);
  is_transferred("read", TRANSFER(cufile.Read(handle, buffer, 4096, 8192, 0)), 4096);
  is_number("after-read", lseek(fd, 0, SEEK_CUR), 1234);
  is_transferred("write", TRANSFER(cufile.Write(handle, buffer, 4096, 8192, 0)), 4096);
  is_number("after-write", lseek(fd, 0, SEEK_CUR), 1234);
}

static void large(void) {
  CUfileHandle_t handle = handle_of(new_file("file", O_RDWR, 1, 40 * MIB));
  char *buffer = allocate(40 * MIB);
  is_transferred("read-40-mib", TRANSFER(cufile.Read(handle, buffer, 40 * MIB, 0, 0)), 40 * MIB);
  is_pattern("read-40-mib-data", buffer, 1, 0, 40 * MIB);
  put_pattern(buffer, 2, 0, 40 * MIB);
  is_transferred("write-40-mib", TRANSFER(cufile.Write(handle, buffer, 40 * MIB, 0, 0)), 40 * MIB);
  is_number("write-40-mib-data", file_has("file", 2, 0, 40 * MIB), 1);
  is_transferred("read-unaligned", TRANSFER(cufile.Read(handle, buffer, 33 * MIB + 1, 4097, 3)), 33 * MIB + 1);
  is_pattern("read-unaligned-data", buffer + 3, 2, 4097, 33 * MIB + 1);
}

static void full_device(void) {
  CUfileHandle_t handle = NULL;
  CUfileError_t error = register_fd(&handle, open("/dev/full", O_RDWR));
  observe("register", error_text(error));
  if (error.err == CU_FILE_SUCCESS) {
    observe_transferred("write", TRANSFER(cufile.Write(handle, allocate(4096), 4096, 0, 0)));
  }
}

static void too_far(void) {
  int fd = new_file("file", O_RDWR, 1, 4096);
  CUfileHandle_t handle = handle_of(fd);
  void *buffer = allocate(4096);
  struct transferred got = TRANSFER(cufile.Write(handle, buffer, 4096, INT64_MAX - 8191, 0));
  is_refused("beyond-the-largest-file", got);
  observe_transferred("beyond-the-largest-file-code", got);
}

static void random_both_ways(void) {
  CUfileHandle_t handle = handle_of(new_file("file", O_RDWR, 1, SIZE));
  char *buffer = allocate(SIZE);
  SUCCEEDS("register", cufile.BufRegister(buffer, SIZE, 0));
  unsigned seed = 12345;
  int wrong = 0, short_ones = 0;
  for (int i = 0; i < 200; i++) {
    size_t size = 1 + (size_t)rand_r(&seed) % 60000, file = (size_t)rand_r(&seed) % (SIZE - size), at = (size_t)rand_r(&seed) % (SIZE - size);
    short_ones += cufile.Read(handle, buffer, size, (off_t)file, (off_t)at) != (ssize_t)size;
    wrong += !has_pattern(buffer + at, 1, file, size);
  }
  is_number("200-reads-whole", short_ones, 0);
  is_number("200-reads-right", wrong, 0);
  wrong = short_ones = 0;
  for (int i = 0; i < 100; i++) {
    size_t size = 1 + (size_t)rand_r(&seed) % 60000, file = (size_t)rand_r(&seed) % (SIZE - size), at = (size_t)rand_r(&seed) % (SIZE - size);
    put_pattern(buffer + at, 100 + (uint32_t)i, file, size);
    short_ones += cufile.Write(handle, buffer, size, (off_t)file, (off_t)at) != (ssize_t)size;
    wrong += !file_has("file", 100 + (uint32_t)i, file, size);
  }
  is_number("100-writes-whole", short_ones, 0);
  is_number("100-writes-right", wrong, 0);
}

static void reads_cost_no_errno(void) {
  CUfileHandle_t handle = handle_of(new_file("file", O_RDWR, 1, 4096));
  void *buffer = allocate(4096);
  errno = 77;
  ssize_t n = cufile.Read(handle, buffer, 4096, 0, 0);
  observe("errno-after-success", text("%zd, errno %s", n, errno == 77 ? "kept" : "changed"));
}

const struct group io_groups[] = {
    {"read.aligned", "aligned reads, registered memory and not, O_DIRECT and not", read_aligned, USES_MEMORY, NULL},
    {"read.unaligned", "every kind of unaligned offset and size", read_unaligned, USES_MEMORY, NULL},
    {"read.unaligned-pointer", "unaligned base pointers", read_unaligned_pointer, USES_MEMORY, NULL},
    {"read.end", "across and behind the end of the file", read_end, USES_MEMORY, NULL},
    {"read.empty", "an empty file", read_empty, USES_MEMORY, NULL},
    {"io.zero-size", "no bytes", zero_size, USES_MEMORY, NULL},
    {"io.negative", "negative offsets", negative, USES_MEMORY, NULL},
    {"io.null-buffer", "a null buffer", null_buffer, USES_MEMORY, NULL},
    {"io.bad-buffer", "an address where nothing is", bad_buffer, MAY_CRASH, NULL},
    {"io.huge", "sizes and offsets that cannot be", huge, USES_MEMORY | MAY_CRASH, NULL},
    {"io.registered-offsets", "offsets into registered memory", registered_offsets, USES_MEMORY, NULL},
    {"io.past-registered", "beyond the end of registered memory", past_registered, USES_MEMORY | MAY_CRASH, NULL},
    {"write.aligned", "aligned writes", write_aligned, USES_MEMORY, NULL},
    {"write.unaligned", "unaligned writes leave what is around them", write_unaligned, USES_MEMORY, NULL},
    {"write.extends", "writes behind the end, holes", write_extends, USES_MEMORY, NULL},
    {"write.full-device", "/dev/full", full_device, USES_MEMORY | MAY_CRASH, NULL},
    {"write.too-far", "beyond the largest file", too_far, USES_MEMORY, NULL},
    {"read.sparse", "a file of holes", sparse, USES_MEMORY, NULL},
    {"read.truncated", "a file that becomes shorter and longer", truncated, USES_MEMORY, NULL},
    {"io.coherent", "what pread, pwrite and mmap see", coherent, USES_MEMORY, NULL},
    {"io.position", "the descriptor's position stays", position, USES_MEMORY, NULL},
    {"io.large", "more than one request's size", large, USES_MEMORY, NULL},
    {"io.random", "random places and sizes", random_both_ways, USES_MEMORY, NULL},
    {"io.errno", "errno after success", reads_cost_no_errno, USES_MEMORY, NULL},
    {0},
};
