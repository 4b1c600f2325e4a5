// Registration of files: kinds of file descriptors and of descriptions.
#include "suite.h"

#include <sys/socket.h>

static void regular(void) {
  static const struct {
    const char *name;
    int flags;
  } kinds[] = {
      {"read-write", O_RDWR}, {"read-only", O_RDONLY}, {"write-only", O_WRONLY}, {"sync", O_RDWR | O_SYNC}, {"cloexec", O_RDWR | O_CLOEXEC},
  };
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
    CUfileHandle_t handle = NULL;
    int fd = new_file(kinds[i].name, kinds[i].flags, 1, 8192);
    SUCCEEDS(text("%s", kinds[i].name), register_fd(&handle, fd));
    is_true(text("%s-handle", kinds[i].name), handle != NULL, "a handle", handle == NULL ? "null" : "a handle");
    cufile.HandleDeregister(handle);
    is_number(text("%s-fd-stays-open", kinds[i].name), fcntl(fd, F_GETFD) >= 0, 1);
    close(fd);
  }
}

static void direct(void) {
  int fd = new_file("direct", O_RDWR | O_DIRECT, 1, 8192);
  if (fd < 0) {
    give_up("this file system has no O_DIRECT");
  }
  CUfileHandle_t handle = NULL;
  SUCCEEDS("register", register_fd(&handle, fd));
  cufile.HandleDeregister(handle);
}

static void odd_flags(void) {
  CUfileHandle_t handle = NULL;
  observe("append", error_text(register_fd(&handle, new_file("append", O_RDWR | O_APPEND, 1, 8192))));
  int hidden = open(".", O_RDWR | O_TMPFILE, 0600);
  if (hidden >= 0) {
    observe("tmpfile", error_text(register_fd(&handle, hidden)));
  } else {
    skip("tmpfile", "this file system has no O_TMPFILE");
  }
  int path = open("append", O_PATH);
  observe("path", error_text(register_fd(&handle, path)));
  observe("nonblock", error_text(register_fd(&handle, new_file("nonblock", O_RDWR | O_NONBLOCK, 1, 8192))));
  observe("empty-file", error_text(register_fd(&handle, new_file("empty", O_RDWR, 1, 0))));
  int gone = new_file("gone", O_RDWR, 1, 8192);
  unlink("gone");
  observe("unlinked", error_text(register_fd(&handle, gone)));
}

static void not_a_file(const char *name, int fd) {
  CUfileHandle_t handle = NULL;
  CUfileError_t error = register_fd(&handle, fd);
  is_true(text("%s-refused", name), error.err != CU_FILE_SUCCESS, "an error", error_text(error));
  observe(text("%s-code", name), error_text(error));
}

static void other_kinds(void) {
  int ends[2], sockets[2];
  if (pipe(ends) != 0 || socketpair(AF_UNIX, SOCK_STREAM, 0, sockets) != 0) {
    give_up("no pipe and no socket");
  }
  not_a_file("pipe", ends[0]);
  not_a_file("socket", sockets[0]);
  not_a_file("directory", open(".", O_RDONLY | O_DIRECTORY));
  CUfileHandle_t handle = NULL;
  observe("dev-null", error_text(register_fd(&handle, open("/dev/null", O_RDWR))));
  observe("dev-zero", error_text(register_fd(&handle, open("/dev/zero", O_RDWR))));
  observe("proc", error_text(register_fd(&handle, open("/proc/self/status", O_RDONLY))));
}

static void no_fd(void) {
  CUfileHandle_t handle = NULL;
  int closed = new_file("closed", O_RDWR, 1, 4096);
  close(closed);
  CUfileError_t error = register_fd(&handle, closed);
  is_true("closed-refused", error.err != CU_FILE_SUCCESS, "an error", error_text(error));
  observe("closed", error_text(error));
  is_error("minus-one", register_fd(&handle, -1), CU_FILE_INVALID_VALUE);
  error = register_fd(&handle, 1 << 20);
  is_true("never-opened-refused", error.err != CU_FILE_SUCCESS, "an error", error_text(error));
  observe("never-opened", error_text(error));
}

static void arguments(void) {
  CUfileHandle_t handle = NULL;
  CUfileDescr_t description;
  memset(&description, 0, sizeof description);
  description.type = CU_FILE_HANDLE_TYPE_OPAQUE_FD;
  description.handle.fd = new_file("file", O_RDWR, 1, 4096);
  is_error("null-handle", cufile.HandleRegister(NULL, &description), CU_FILE_INVALID_VALUE);
  is_error("null-description", cufile.HandleRegister(&handle, NULL), CU_FILE_INVALID_VALUE);
  is_error("both-null", cufile.HandleRegister(NULL, NULL), CU_FILE_INVALID_VALUE);
  description.type = (enum CUfileFileHandleType)0;
  CUfileError_t error = cufile.HandleRegister(&handle, &description);
  is_true("type-0-refused", error.err != CU_FILE_SUCCESS, "an error", error_text(error));
  observe("type-0", error_text(error));
  description.type = (enum CUfileFileHandleType)77;
  error = cufile.HandleRegister(&handle, &description);
  is_true("type-77-refused", error.err != CU_FILE_SUCCESS, "an error", error_text(error));
  observe("type-77", error_text(error));
  description.type = CU_FILE_HANDLE_TYPE_OPAQUE_WIN32;
  error = cufile.HandleRegister(&handle, &description);
  is_true("win32-refused", error.err != CU_FILE_SUCCESS, "an error", error_text(error));
  observe("win32", error_text(error));
}

static ssize_t fs_read(void *handle, char *to, size_t size, loff_t at, cufileRDMAInfo_t *info) {
  (void)handle, (void)to, (void)size, (void)at, (void)info;
  return -1;
}

static ssize_t fs_write(void *handle, const char *from, size_t size, loff_t at, cufileRDMAInfo_t *info) {
  (void)handle, (void)from, (void)size, (void)at, (void)info;
  return -1;
}

static const char *fs_type(void *handle) {
  (void)handle;
  return "of-the-suite";
}

static void userspace(void) {
  CUfileHandle_t handle = NULL;
  CUfileFSOps_t operations = {.fs_type = fs_type, .read = fs_read, .write = fs_write};
  CUfileDescr_t description;
  memset(&description, 0, sizeof description);
  description.type = CU_FILE_HANDLE_TYPE_USERSPACE_FS;
  description.handle.handle = &operations;
  CUfileError_t error = cufile.HandleRegister(&handle, &description);
  is_true("no-operations-refused", error.err != CU_FILE_SUCCESS, "an error", error_text(error));
  observe("no-operations", error_text(error));
  description.fs_ops = &operations;
  observe("operations", error_text(cufile.HandleRegister(&handle, &description)));
}

static void same_fd(void) {
  CUfileHandle_t first = NULL, second = NULL;
  int fd = new_file("file", O_RDWR, 1, 4096);
  SUCCEEDS("once", register_fd(&first, fd));
  is_error("twice", register_fd(&second, fd), CU_FILE_HANDLE_ALREADY_REGISTERED);
  void *buffer = allocate(4096);
  is_transferred("first-still-reads", TRANSFER(cufile.Read(first, buffer, 4096, 0, 0)), 4096);
  cufile.HandleDeregister(first);
  SUCCEEDS("again-after-deregister", register_fd(&second, fd));
  is_transferred("second-reads", TRANSFER(cufile.Read(second, buffer, 4096, 0, 0)), 4096);
  cufile.HandleDeregister(second);
}

static void same_file(void) {
  CUfileHandle_t first = NULL, second = NULL, third = NULL;
  int fd = new_file("file", O_RDWR, 1, 4096);
  SUCCEEDS("first", register_fd(&first, fd));
  SUCCEEDS("duplicate", register_fd(&second, dup(fd)));
  SUCCEEDS("opened-again", register_fd(&third, open("file", O_RDONLY)));
  is_true("handles-differ", first != second && second != third && first != third, "three handles",
          first != second && second != third && first != third ? "three handles" : "fewer");
  void *buffer = allocate(4096);
  cufile.HandleDeregister(first);
  is_transferred("duplicate-reads", TRANSFER(cufile.Read(second, buffer, 4096, 0, 0)), 4096);
  is_pattern("duplicate-data", buffer, 1, 0, 4096);
  cufile.HandleDeregister(second);
  cufile.HandleDeregister(third);
}

static void fd_closed_first(void) {
  CUfileHandle_t handle = NULL, next = NULL;
  int fd = new_file("file", O_RDWR, 1, 4096);
  SUCCEEDS("register", register_fd(&handle, fd));
  close(fd);
  void *buffer = allocate(4096);
  observe_transferred("read-after-close", TRANSFER(cufile.Read(handle, buffer, 4096, 0, 0)));
  int other = new_file("other", O_RDWR, 2, 4096);
  if (other != fd) {
    other = dup2(other, fd);
  }
  observe("number-again", error_text(register_fd(&next, other)));
  cufile.HandleDeregister(handle);
}

static void deregistered(void) {
  CUfileHandle_t handle = handle_of(new_file("file", O_RDWR, 1, 4096));
  void *buffer = allocate(4096);
  cufile.HandleDeregister(handle);
  struct transferred got = TRANSFER(cufile.Read(handle, buffer, 4096, 0, 0));
  is_refused("read", got);
  observe_transferred("read-code", got);
  got = TRANSFER(cufile.Write(handle, buffer, 4096, 0, 0));
  is_refused("write", got);
  observe_transferred("write-code", got);
}

static void deregistered_twice(void) {
  CUfileHandle_t handle = handle_of(new_file("file", O_RDWR, 1, 4096));
  cufile.HandleDeregister(handle);
  cufile.HandleDeregister(handle);
  observe("lives", "yes");
}

static void deregister_null(void) {
  open_driver();
  cufile.HandleDeregister(NULL);
  observe("lives", "yes");
}

static void deregister_unknown(void) {
  open_driver();
  static char not_a_handle[4096];
  cufile.HandleDeregister(not_a_handle);
  observe("lives", "yes");
}

static void null_handle(void) {
  open_driver();
  void *buffer = allocate(4096);
  struct transferred got = TRANSFER(cufile.Read(NULL, buffer, 4096, 0, 0));
  is_refused("read", got);
  observe_transferred("read-code", got);
  got = TRANSFER(cufile.Write(NULL, buffer, 4096, 0, 0));
  is_refused("write", got);
  observe_transferred("write-code", got);
}

static void unknown_handle(void) {
  open_driver();
  static char not_a_handle[4096];
  void *buffer = allocate(4096);
  observe_transferred("read", TRANSFER(cufile.Read(not_a_handle, buffer, 4096, 0, 0)));
}

static void read_only(void) {
  CUfileHandle_t handle = handle_of(new_file("file", O_RDONLY, 1, 4096));
  void *buffer = allocate(4096);
  is_transferred("reads", TRANSFER(cufile.Read(handle, buffer, 4096, 0, 0)), 4096);
  struct transferred got = TRANSFER(cufile.Write(handle, buffer, 4096, 0, 0));
  is_refused("write", got);
  observe_transferred("write-code", got);
  is_number("file-unchanged", file_has("file", 1, 0, 4096), 1);
}

static void write_only(void) {
  CUfileHandle_t handle = handle_of(new_file("file", O_WRONLY, 1, 4096));
  void *buffer = allocate(4096);
  put_pattern(buffer, 2, 0, 4096);
  observe_transferred("write-code", TRANSFER(cufile.Write(handle, buffer, 4096, 0, 0)));
  struct transferred got = TRANSFER(cufile.Read(handle, buffer, 4096, 0, 0));
  is_refused("read", got);
  observe_transferred("read-code", got);
}

static void append(void) {
  CUfileHandle_t handle = NULL;
  int fd = new_file("file", O_RDWR | O_APPEND, 1, 8192);
  if (register_fd(&handle, fd).err != CU_FILE_SUCCESS) {
    skip("write", "O_APPEND is refused");
    return;
  }
  void *buffer = allocate(4096);
  put_pattern(buffer, 2, 0, 4096);
  observe_transferred("write-at-0", TRANSFER(cufile.Write(handle, buffer, 4096, 0, 0)));
  struct stat status;
  fstat(fd, &status);
  observe("size-after", text("%lld", (long long)status.st_size));
}

static void many(void) {
  enum { COUNT = 200 };
  static CUfileHandle_t handles[COUNT];
  int failed = 0;
  close(new_file("file", O_RDWR, 1, 4096));
  for (int i = 0; i < COUNT; i++) {
    failed += register_fd(&handles[i], open("file", O_RDONLY)).err != CU_FILE_SUCCESS;
  }
  is_number("200-at-once", failed, 0);
  for (int i = 0; i < COUNT; i++) {
    cufile.HandleDeregister(handles[i]);
  }
  int fd = open("file", O_RDONLY);
  failed = 0;
  for (int i = 0; i < 1000; i++) {
    CUfileHandle_t handle = NULL;
    failed += register_fd(&handle, fd).err != CU_FILE_SUCCESS;
    cufile.HandleDeregister(handle);
  }
  is_number("1000-after-each-other", failed, 0);
}

const struct group handle_groups[] = {
    {"handle.regular", "regular files by open mode", regular, 0, NULL},
    {"handle.direct", "O_DIRECT", direct, 0, NULL},
    {"handle.odd-flags", "O_APPEND, O_TMPFILE, O_PATH and others", odd_flags, 0, NULL},
    {"handle.other-kinds", "pipes, sockets, directories, devices", other_kinds, 0, NULL},
    {"handle.no-fd", "numbers that are no open file", no_fd, 0, NULL},
    {"handle.arguments", "null pointers and types", arguments, 0, NULL},
    {"handle.userspace", "file systems of user space", userspace, MAY_CRASH, NULL},
    {"handle.same-fd", "one file descriptor twice", same_fd, USES_MEMORY, NULL},
    {"handle.same-file", "one file by several descriptors", same_file, USES_MEMORY, NULL},
    {"handle.fd-closed-first", "the descriptor is closed before the handle", fd_closed_first, USES_MEMORY | MAY_CRASH, NULL},
    {"handle.deregistered", "use after deregistration", deregistered, USES_MEMORY | MAY_CRASH, NULL},
    {"handle.deregistered-twice", "two deregistrations", deregistered_twice, MAY_CRASH, NULL},
    {"handle.deregister-null", "deregistration of null", deregister_null, MAY_CRASH, NULL},
    {"handle.deregister-unknown", "deregistration of what is no handle", deregister_unknown, MAY_CRASH, NULL},
    {"handle.null", "transfers with a null handle", null_handle, USES_MEMORY, NULL},
    {"handle.unknown", "transfers with what is no handle", unknown_handle, USES_MEMORY | MAY_CRASH, NULL},
    {"handle.read-only", "a write to O_RDONLY", read_only, USES_MEMORY, NULL},
    {"handle.write-only", "a read of O_WRONLY", write_only, USES_MEMORY, NULL},
    {"handle.append", "a write to O_APPEND", append, USES_MEMORY, NULL},
    {"handle.many", "200 handles, and 1000 after each other", many, 0, NULL},
    {0},
};
