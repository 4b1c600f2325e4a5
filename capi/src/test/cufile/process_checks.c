// Threads, fork, loading and unloading, and the end of a process.
#include "suite.h"

#include <dirent.h>
#include <dlfcn.h>
#include <signal.h>
#include <stdatomic.h>

enum { SIZE = 4 << 20, THREADS = 8 };

static CUfileHandle_t shared_handle;
static atomic_int wrong;

static void *reads_at_random(void *argument) {
  unsigned seed = (unsigned)(uintptr_t)argument;
  open_cuda();
  char *buffer = allocate(131072);
  for (int i = 0; i < 150; i++) {
    size_t size = 1 + (size_t)rand_r(&seed) % 131000, file = (size_t)rand_r(&seed) % (SIZE - size);
    if (cufile.Read(shared_handle, buffer, size, (off_t)file, 0) != (ssize_t)size || !has_pattern(buffer, 1, file, size)) {
      wrong++;
    }
  }
  release(buffer);
  return NULL;
}

static void *registers(void *argument) {
  (void)argument;
  open_cuda();
  for (int i = 0; i < 40; i++) {
    CUfileHandle_t handle = NULL;
    int fd = open("file", O_RDONLY);
    void *buffer = allocate(262144);
    wrong += register_fd(&handle, fd).err != CU_FILE_SUCCESS;
    wrong += cufile.BufRegister(buffer, 262144, 0).err != CU_FILE_SUCCESS;
    wrong += cufile.Read(handle, buffer, 65536, 4096, 0) != 65536;
    wrong += cufile.BufDeregister(buffer).err != CU_FILE_SUCCESS;
    cufile.HandleDeregister(handle);
    close(fd);
    release(buffer);
  }
  return NULL;
}

typedef void *(*thread_start)(void *);

static void run_threads(thread_start (*of)(int)) {
  pthread_t threads[THREADS];
  for (int i = 0; i < THREADS; i++) {
    pthread_create(&threads[i], NULL, of(i), (void *)(uintptr_t)(i + 1));
  }
  for (int i = 0; i < THREADS; i++) {
    pthread_join(threads[i], NULL);
  }
}

static thread_start all_read(int i) {
  (void)i;
  return reads_at_random;
}

static thread_start some_register(int i) { return i % 2 == 0 ? reads_at_random : registers; }

static void threads_read(void) {
  shared_handle = handle_of(new_file("file", O_RDWR, 1, SIZE));
  run_threads(all_read);
  is_number("8-threads-one-handle", wrong, 0);
}

static void threads_register(void) {
  shared_handle = handle_of(new_file("file", O_RDWR, 1, SIZE));
  run_threads(some_register);
  is_number("4-read-4-register", wrong, 0);
}

static void *opens(void *argument) {
  (void)argument;
  open_cuda();
  CUfileHandle_t handle = NULL;
  int fd = open("file", O_RDONLY);
  wrong += register_fd(&handle, fd).err != CU_FILE_SUCCESS;
  void *buffer = allocate(4096);
  wrong += cufile.Read(handle, buffer, 4096, 0, 0) != 4096;
  return NULL;
}

static thread_start all_open(int i) {
  (void)i;
  return opens;
}

static void threads_open(void) {
  close(new_file("file", O_RDWR, 1, SIZE));
  run_threads(all_open);
  is_number("8-first-calls-at-once", wrong, 0);
}

static void *writes_its_part(void *argument) {
  size_t part = (size_t)(uintptr_t)argument - 1;
  open_cuda();
  char *buffer = allocate(65536);
  for (size_t at = part * (SIZE / THREADS); at < (part + 1) * (SIZE / THREADS); at += 65536) {
    put_pattern(buffer, 9, at, 65536);
    wrong += cufile.Write(shared_handle, buffer, 65536, (off_t)at, 0) != 65536;
  }
  return NULL;
}

static thread_start all_write(int i) {
  (void)i;
  return writes_its_part;
}

static void threads_write(void) {
  shared_handle = handle_of(new_file("file", O_RDWR, 1, SIZE));
  run_threads(all_write);
  is_number("8-threads-one-file", wrong, 0);
  is_number("data", file_has("file", 9, 0, SIZE), 1);
}

// ---- fork

static int waited(pid_t child, double seconds) {
  int status = -1;
  double until = seconds_now() + seconds;
  while (waitpid(child, &status, WNOHANG) == 0) {
    if (seconds_now() > until) {
      kill(child, SIGKILL);
      waitpid(child, &status, 0);
      return -1;
    }
    usleep(2000);
  }
  return status;
}

static const char *end_text(int status) {
  return status == -1 ? "no end" : WIFSIGNALED(status) ? text("signal %s", sigabbrev_np(WTERMSIG(status))) : text("exit code %d", WEXITSTATUS(status));
}

static void fork_after(void) {
  CUfileHandle_t handle = handle_of(new_file("file", O_RDWR, 1, 65536));
  char *buffer = allocate(65536);
  is_transferred("before", TRANSFER(cufile.Read(handle, buffer, 65536, 0, 0)), 65536);
  pid_t child = fork();
  if (child == 0) {
    _exit(0); // a child that uses nothing of the library, as before exec
  }
  is_true("idle-child", waited(child, 20) == 0, "exit code 0", "exit code 0");
  child = fork();
  if (child == 0) {
    char *memory_ = malloc(65536);
    struct transferred got = TRANSFER(cufile.Read(handle, memory_, 4096, 0, 0));
    _exit(got.value == 4096 ? 1 : got.value < 0 ? 2 : 3);
  }
  int status = waited(child, 10);
  observe("child-reads", status == -1                                        ? "no end"
                         : WIFEXITED(status) && WEXITSTATUS(status) == 1 ? "it reads"
                         : WIFEXITED(status) && WEXITSTATUS(status) == 2 ? "an error"
                                                                         : end_text(status));
  child = fork();
  if (child == 0) {
    CUfileHandle_t own = NULL;
    CUfileError_t error = register_fd(&own, open("file", O_RDONLY));
    _exit(error.err == CU_FILE_SUCCESS ? 1 : 2);
  }
  status = waited(child, 10);
  observe("child-registers", status == -1                                        ? "no end"
                             : WIFEXITED(status) && WEXITSTATUS(status) == 1 ? "it registers"
                             : WIFEXITED(status) && WEXITSTATUS(status) == 2 ? "an error"
                                                                             : end_text(status));
  child = fork();
  if (child == 0) {
    exit(0); // with its exit handlers
  }
  status = waited(child, 10);
  observe("child-exits", end_text(status));
  is_transferred("parent-goes-on", TRANSFER(cufile.Read(handle, buffer, 65536, 0, 0)), 65536);
  is_pattern("parent-data", buffer, 1, 0, 65536);
}

static void fork_exec(void) {
  CUfileHandle_t handle = handle_of(new_file("file", O_RDWR, 1, 65536));
  (void)handle;
  is_number("system", system("true"), 0);
  is_number("system-fails", WEXITSTATUS(system("exit 7")), 7);
}

static void fork_before(void) {
  // Loaded, not used yet: a child may be the one that uses it.
  pid_t child = fork();
  if (child == 0) {
    CUfileHandle_t handle = NULL;
    int fd = new_file("file", O_RDWR, 1, 65536);
    char *buffer = malloc(65536);
    _exit(register_fd(&handle, fd).err == CU_FILE_SUCCESS && cufile.Read(handle, buffer, 65536, 0, 0) == 65536 ? 0 : 2);
  }
  observe("child-uses-it", end_text(waited(child, 30)));
}

// ---- Loading

static void loads(int rounds, bool use) {
  int failed = 0, unusable = 0;
  for (int i = 0; i < rounds; i++) {
    void *library = dlopen(cufile_library, RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) {
      failed++;
      continue;
    }
    __typeof__(cuFileGetVersion) *version;
    *(void **)&version = dlsym(library, "cuFileGetVersion");
    int value = 0;
    unusable += version == NULL || version(&value).err != CU_FILE_SUCCESS;
    if (use) {
      __typeof__(cuFileDriverOpen) *open_driver;
      __typeof__(cuFileUseCount) *count;
      CUfileError_t (*close_driver)(void);
      *(void **)&open_driver = dlsym(library, "cuFileDriverOpen");
      *(void **)&count = dlsym(library, "cuFileUseCount");
      *(void **)&close_driver = dlsym(library, "cuFileDriverClose_v2");
      unusable += open_driver().err != CU_FILE_SUCCESS;
      unusable += count() != 1;
      unusable += close_driver().err != CU_FILE_SUCCESS;
    }
    failed += dlclose(library) != 0;
  }
  is_number("failed", failed, 0);
  is_number("unusable", unusable, 0);
}

static void load_ten_times(void) { loads(10, false); }

static void load_use_ten_times(void) {
  open_cuda();
  loads(10, true);
}

static int threads_now(void) {
  int count = 0;
  DIR *folder = opendir("/proc/self/task");
  for (struct dirent *e; folder != NULL && (e = readdir(folder)) != NULL;) {
    count += e->d_name[0] != '.';
  }
  closedir(folder);
  return count;
}

static void load_only(void) {
  open_cuda();
  int before = threads_now();
  struct sigaction segv, is;
  sigaction(SIGSEGV, NULL, &segv);
  is_number("loads", load_cufile(), 1);
  observe("threads-of-loading", text("%d", threads_now() - before));
  sigaction(SIGSEGV, NULL, &is);
  is_number("segv-handler-as-before", is.sa_handler == segv.sa_handler, 1);
}

static void own_handler(int number) { (void)number; }

static void signals(void) {
  static const int all[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGPIPE, SIGCHLD, SIGALRM};
  struct sigaction mine = {.sa_handler = own_handler};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
    sigaction(all[i], &mine, NULL);
  }
  CUfileHandle_t handle = handle_of(new_file("file", O_RDWR, 1, 65536));
  char *buffer = allocate(65536);
  is_transferred("read", TRANSFER(cufile.Read(handle, buffer, 65536, 0, 0)), 65536);
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
    struct sigaction is;
    sigaction(all[i], NULL, &is);
    is_true(text("%s-handler-kept", sigabbrev_np(all[i])), is.sa_handler == own_handler, "the program's", is.sa_handler == own_handler ? "the program's" : "another");
  }
}

static void default_signals(void) {
  CUfileHandle_t handle = handle_of(new_file("file", O_RDWR, 1, 65536));
  char *buffer = allocate(65536);
  is_transferred("read", TRANSFER(cufile.Read(handle, buffer, 65536, 0, 0)), 65536);
  static const int all[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
    struct sigaction is;
    sigaction(all[i], NULL, &is);
    is_true(text("%s-is-default", sigabbrev_np(all[i])), is.sa_handler == SIG_DFL, "default", is.sa_handler == SIG_DFL ? "default" : "a handler");
  }
}

static void leaves_no_handles(void) {
  CUfileHandle_t handle = handle_of(new_file("file", O_RDWR, 1, 65536));
  char *buffer = allocate(65536);
  cufile.BufRegister(buffer, 65536, 0);
  is_transferred("read", TRANSFER(cufile.Read(handle, buffer, 65536, 0, 0)), 65536);
  fflush(NULL);
  // Its end without closing anything: exit handlers of the library run. The parent sees how it ends.
  exit(0);
}

static int entries(const char *folder) {
  int count = 0;
  DIR *d = opendir(folder);
  for (struct dirent *e; d != NULL && (e = readdir(d)) != NULL;) {
    count++;
  }
  if (d != NULL) {
    closedir(d);
  }
  return count;
}

static void killed(void) {
  char folder[2048];
  if (mkdir("temporary", 0700) != 0 || getcwd(folder, sizeof folder) == NULL) {
    give_up("no folder for temporary files");
  }
  setenv("TMPDIR", text("%s/temporary", folder), 1);
  int shared = entries("/dev/shm"), left = 0;
  for (int i = 0; i < 3; i++) {
    int ends[2];
    if (pipe(ends) != 0) {
      give_up("no pipe");
    }
    pid_t child = fork();
    if (child == 0) {
      close(ends[0]);
      open_cuda();
      if (!load_cufile()) {
        _exit(1);
      }
      CUfileHandle_t handle = NULL;
      if (register_fd(&handle, new_file("file", O_RDWR, 1, 65536)).err != CU_FILE_SUCCESS) {
        _exit(1);
      }
      char *buffer = malloc(65536);
      for (char go = 1; cufile.Read(handle, buffer, 65536, 0, 0) == 65536 && (go == 0 || write(ends[1], &go, 1) == 1); go = 0) {
      }
      _exit(2);
    }
    close(ends[1]);
    char go = 0;
    is_number(text("reads-%d", i), read(ends[0], &go, 1), 1); // or it has ended
    usleep(50000);
    kill(child, SIGKILL);
    int status = 0;
    waitpid(child, &status, 0);
    is_true(text("killed-while-reading-%d", i), WIFSIGNALED(status), "signal KILL", end_text(status));
    left += system(text("ls /tmp/hsperfdata_*/%d >/dev/null 2>&1", child)) == 0;
  }
  is_number("left-in-tmpdir", entries("temporary"), 2); // . and ..
  is_number("left-by-java", left, 0);
  observe("left-in-dev-shm", entries("/dev/shm") <= shared ? "nothing" : "something");
}

static void memory_stays_flat(void) {
  CUfileHandle_t handle = handle_of(new_file("file", O_RDWR, 1, SIZE));
  char *buffer = allocate(SIZE);
  long pages[2] = {0};
  for (int round = 0; round < 2; round++) {
    for (int i = 0; i < 1000; i++) {
      cufile.Read(handle, buffer, 65536, (i % 60) * 65536L, 0);
      CUfileHandle_t other = NULL;
      int fd = open("file", O_RDONLY);
      register_fd(&other, fd);
      cufile.HandleDeregister(other);
      close(fd);
    }
    FILE *f = fopen("/proc/self/statm", "r");
    if (f == NULL || fscanf(f, "%*d %ld", &pages[round]) != 1) {
      give_up("no /proc/self/statm");
    }
    fclose(f);
  }
  long grown = (pages[1] - pages[0]) * 4 / 1024;
  is_true("1000-more-rounds", grown < 16, "less than 16 MiB more", grown < 16 ? "less than 16 MiB more" : text("%ld MiB more", grown));
}

static int descriptors(void) { return entries("/proc/self/fd"); }

static void descriptors_stay(void) {
  CUfileHandle_t handle = NULL;
  int fd = new_file("file", O_RDWR, 1, SIZE);
  char *buffer = allocate(65536);
  int counts[2];
  for (int round = 0; round < 2; round++) {
    for (int i = 0; i < 50; i++) {
      register_fd(&handle, fd);
      cufile.Read(handle, buffer, 65536, 0, 0);
      cufile.HandleDeregister(handle);
    }
    counts[round] = descriptors();
  }
  is_number("more-after-50-more-handles", counts[1] - counts[0], 0);
}

const struct group process_groups[] = {
    {"threads.read", "8 threads read by one handle", threads_read, USES_MEMORY, NULL},
    {"threads.write", "8 threads write parts of one file", threads_write, USES_MEMORY, NULL},
    {"threads.register", "some read while others register and deregister", threads_register, USES_MEMORY, NULL},
    {"threads.open", "8 threads make the first call", threads_open, USES_MEMORY, NULL},
    {"fork.after-use", "children of a process that uses the library", fork_after, USES_MEMORY, NULL},
    {"fork.exec", "system()", fork_exec, 0, NULL},
    {"fork.before-use", "the child is the first to use it", fork_before, MAY_CRASH, NULL},
    {"load.ten-times", "dlopen and dlclose ten times", load_ten_times, UNLOADED, NULL},
    {"load.use-ten-times", "the same, with an open driver between", load_use_ten_times, UNLOADED, NULL},
    {"load.only", "what loading does", load_only, UNLOADED, NULL},
    {"process.signals", "the program's handlers stay", signals, USES_MEMORY, NULL},
    {"process.default-signals", "no handlers where the program has none", default_signals, 0, NULL},
    {"process.exit", "exit() with everything open", leaves_no_handles, USES_MEMORY, NULL},
    {"process.killed", "kill -9 while it reads", killed, UNLOADED, NULL},
    {"process.memory", "memory is flat", memory_stays_flat, USES_MEMORY, NULL},
    {"process.descriptors", "file descriptors are flat", descriptors_stay, USES_MEMORY, NULL},
    {0},
};
