// What a program sees of libcufile.so.0: each group of functions on memory of the host, and, if GPUNVME_LIBCUDA names a stand-in for
// CUDA's driver, on memory of its GPU. It is linked with the sources, so that sanitizers see them.
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include "check.h"
#include "cufile_abi.h"

#define MIB ((size_t)1 << 20)
#define BYTES (10 * MIB + 777)

static char path[4096];
static unsigned char *content, *memory;

static unsigned char byte_at(size_t i) {
  return (unsigned char)(i * 7 + i / 251 + i / 65536);
}

#define IS(code, call)                                                                             \
  do {                                                                                             \
    CUfileError_t is_ = (call);                                                                    \
    if (is_.err != (code)) {                                                                       \
      printf("  %s:%d: %d, not %d, from %s\n", __FILE__, __LINE__, is_.err, (int)(code), #call);   \
      check_failures++;                                                                            \
    }                                                                                              \
  } while (0)

#define GIVES(should, call)                                                                                      \
  do {                                                                                                           \
    errno = 0;                                                                                                   \
    ssize_t is_ = (call), should_ = (ssize_t)(should);                                                           \
    if (is_ != should_) {                                                                                        \
      printf("  %s:%d: %zd (errno %d), not %zd, from %s\n", __FILE__, __LINE__, is_, errno, should_, #call);     \
      check_failures++;                                                                                          \
    }                                                                                                            \
  } while (0)

static int open_file(int flags) {
  int fd = open(path, flags | O_CLOEXEC, 0600);
  if (fd < 0) {
    perror(path);
    exit(2);
  }
  return fd;
}

static CUfileHandle_t register_file(int fd) {
  CUfileHandle_t fh = NULL;
  CUfileDescr_t d = {.type = CU_FILE_HANDLE_TYPE_OPAQUE_FD, .handle.fd = fd};
  IS(CU_FILE_SUCCESS, cuFileHandleRegister(&fh, &d));
  return fh;
}

static void renew_file(void) {
  int fd = open_file(O_RDWR | O_CREAT | O_TRUNC);
  for (size_t i = 0; i < BYTES; i++) {
    content[i] = byte_at(i);
  }
  EXPECT(pwrite(fd, content, BYTES, 0) == (ssize_t)BYTES);
  close(fd);
}

// ---- the driver

static void driver(void) {
  CUfileDrvProps_t props;
  int version = 0;
  EXPECT(cuFileUseCount() == 0);
  IS(CU_FILE_DRIVER_NOT_INITIALIZED, cuFileDriverClose());
  IS(CU_FILE_SUCCESS, cuFileDriverOpen());
  IS(CU_FILE_SUCCESS, cuFileDriverOpen());
  EXPECT(cuFileUseCount() == 2);
  IS(CU_FILE_SUCCESS, cuFileDriverGetProperties(&props));
  EXPECT(props.nvfs.dcontrolflags >> CU_FILE_ALLOW_COMPAT_MODE & 1);
  EXPECT(props.max_batch_io_size == 128);
  IS(CU_FILE_INVALID_VALUE, cuFileDriverGetProperties(NULL));
  IS(CU_FILE_SUCCESS, cuFileDriverSetPollMode(true, 8));
  IS(CU_FILE_DRIVER_UNSUPPORTED_LIMIT, cuFileDriverSetPollMode(true, 3));
  IS(CU_FILE_DRIVER_UNSUPPORTED_LIMIT, cuFileDriverSetPollMode(true, 10));
  IS(CU_FILE_SUCCESS, cuFileDriverSetMaxDirectIOSize(1024));
  IS(CU_FILE_DRIVER_UNSUPPORTED_LIMIT, cuFileDriverSetMaxDirectIOSize(1000));
  IS(CU_FILE_SUCCESS, cuFileDriverSetMaxCacheSize(65536));
  IS(CU_FILE_SUCCESS, cuFileDriverSetMaxPinnedMemSize(65536));
  IS(CU_FILE_SUCCESS, cuFileDriverGetProperties(&props));
  EXPECT(props.nvfs.poll_thresh_size == 8 && props.nvfs.max_direct_io_size == 1024 && props.nvfs.dcontrolflags & 1);
  IS(CU_FILE_SUCCESS, cuFileDriverClose());
  IS(CU_FILE_SUCCESS, cuFileDriverClose());
  EXPECT(cuFileUseCount() == 0);
  IS(CU_FILE_SUCCESS, cuFileGetVersion(&version));
  EXPECT(version == 1150);
  IS(CU_FILE_INVALID_VALUE, cuFileGetVersion(NULL));
}

// Of library.c: what cuFileGetBARSizeInKB reads in sysfs.
size_t bar1_bytes(FILE *resource);

static size_t bar1_of(const char *lines) {
  FILE *file = fmemopen((void *)(uintptr_t)lines, strlen(lines), "r");
  const size_t bytes = bar1_bytes(file);
  fclose(file);
  return bytes;
}

// The second region of memory is on the second line behind a region with a 32-bit number, on the third behind one with a 64-bit number.
static void regions_of_gpus(void) {
  static const char none[] = "0x0000000000000000 0x0000000000000000 0x0000000000000000\n";
  char lines[1024];
  snprintf(lines, sizeof lines, "0x00000000f6000000 0x00000000f6ffffff 0x0000000000040200\n0x00000000e0000000 0x00000000efffffff 0x000000000014220c\n%s", none);
  EXPECT(bar1_of(lines) == 256 * MIB);
  snprintf(lines, sizeof lines, "0x0000228042000000 0x0000228042ffffff 0x000000000014220c\n%s0x0000226000000000 0x0000227fffffffff 0x000000000014220c\n%s", none, none);
  EXPECT(bar1_of(lines) == 131072 * MIB);
  snprintf(lines, sizeof lines, "0x00000000f6000000 0x00000000f6ffffff 0x0000000000040200\n%s0x00000000f0000000 0x00000000f1ffffff 0x000000000014220c\n", none);
  EXPECT(bar1_of(lines) == 0);
  EXPECT(bar1_of(none) == 0);
  EXPECT(bar1_of("no numbers") == 0);
}

// Of windows.c: what /proc/self/cgroup and the files of the groups say.
size_t memory_of_groups(FILE *list, const char *root, size_t most);

static char groups_root[4200];

static void group_file(const char *folder, const char *name, const char *text) {
  char whole[4400];
  snprintf(whole, sizeof whole, "%s%s", groups_root, folder);
  mkdir(whole, 0700);
  snprintf(whole, sizeof whole, "%s%s/%s", groups_root, folder, name);
  FILE *file = fopen(whole, "we");
  fputs(text, file);
  fclose(file);
}

static size_t memory_of(const char *lines) {
  FILE *file = fmemopen((void *)(uintptr_t)lines, strlen(lines), "r");
  const size_t bytes = memory_of_groups(file, groups_root, 1 << 30);
  fclose(file);
  return bytes;
}

// The least of a process's group and those above it counts, of both versions of control groups.
static void memory_of_a_group(void) {
  snprintf(groups_root, sizeof groups_root, "%s.groups", path);
  group_file("", "cgroup.procs", "1\n");
  group_file("/memory", "memory.limit_in_bytes", "9223372036854771712\n");
  group_file("/memory/job", "memory.limit_in_bytes", "5000000\n");
  group_file("/a.slice", "memory.max", "7000000\n");
  group_file("/a.slice", "memory.high", "6000000\n");
  group_file("/a.slice/b", "memory.max", "max\n");
  group_file("/c", "memory.max", "99999999999999999\n");
  EXPECT(memory_of("0::/a.slice/b\n") == 6000000);
  EXPECT(memory_of("0::/a.slice/b/none\n") == 6000000);
  EXPECT(memory_of("0::/c\n") == 1 << 30);
  EXPECT(memory_of("0::/\n") == 1 << 30);
  EXPECT(memory_of("12:cpu:/job\n5:memory:/job/step\n1:name=systemd:/\n0::/\n") == 5000000);
  EXPECT(memory_of("12:cpu:/job\n5:memory:/other\n") == 1 << 30);
  EXPECT(memory_of("no list") == 1 << 30);
  group_file("", "memory.max", "4000000\n"); // a container's own
  EXPECT(memory_of("0::/\n") == 4000000);
  EXPECT(memory_of("0::/docker/of-the-host\n") == 4000000);
  EXPECT(memory_of_groups(NULL, groups_root, 77) == 77);
}

static void parameters(void) {
  size_t size = 0, least = 0, most = 0, sizes[3], counts[3] = {1, 2, 3};
  bool yes = true;
  char text[300];
  IS(CU_FILE_SUCCESS, cuFileGetParameterSizeT(CUFILE_PARAM_PROPERTIES_IO_BATCHSIZE, &size));
  EXPECT(size == 128);
  IS(CU_FILE_SUCCESS, cuFileGetParameterMinMaxValue(CUFILE_PARAM_PROPERTIES_IO_BATCHSIZE, &least, &most));
  EXPECT(least == 1 && most == 256);
  IS(CU_FILE_SUCCESS, cuFileSetParameterSizeT(CUFILE_PARAM_PROPERTIES_IO_BATCHSIZE, 64));
  IS(CU_FILE_SUCCESS, cuFileSetParameterSizeT(CUFILE_PARAM_EXECUTION_MAX_IO_QUEUE_DEPTH, 1000)); // refused when the driver opens
  IS(CU_FILE_SUCCESS, cuFileSetParameterBool(CUFILE_PARAM_PROFILE_NVTX, true));
  IS(CU_FILE_SUCCESS, cuFileSetParameterString(CUFILE_PARAM_LOGGING_LEVEL, "ERROR"));
  IS(CU_FILE_INVALID_VALUE, cuFileSetParameterString(CUFILE_PARAM_LOGGING_LEVEL, NULL));
  IS(CU_FILE_INVALID_VALUE, cuFileSetParameterSizeT((CUFileSizeTConfigParameter_t)99, 1));
  IS(CU_FILE_INVALID_VALUE, cuFileGetParameterString(CUFILE_PARAM_LOGGING_LEVEL, text, 3));
  IS(CU_FILE_SUCCESS, cuFileGetParameterPosixPoolSlabArray(sizes, counts, 3));
  EXPECT(sizes[1] == 1024 && counts[0] == 128);
  IS(CU_FILE_INVALID_VALUE, cuFileGetParameterPosixPoolSlabArray(sizes, counts, 2));
  IS(CU_FILE_SUCCESS, cuFileSetParameterPosixPoolSlabArray(sizes, counts, 2));
  IS(CU_FILE_SUCCESS, cuFileDriverOpen());
  IS(CU_FILE_DRIVER_ALREADY_OPEN, cuFileSetParameterSizeT(CUFILE_PARAM_PROPERTIES_IO_BATCHSIZE, 32));
  IS(CU_FILE_DRIVER_ALREADY_OPEN, cuFileSetParameterBool(CUFILE_PARAM_PROFILE_NVTX, false));
  IS(CU_FILE_SUCCESS, cuFileGetParameterSizeT(CUFILE_PARAM_PROPERTIES_IO_BATCHSIZE, &size));
  EXPECT(size == 64);
  IS(CU_FILE_SUCCESS, cuFileGetParameterSizeT(CUFILE_PARAM_EXECUTION_MAX_IO_QUEUE_DEPTH, &size));
  EXPECT(size == 128);
  IS(CU_FILE_SUCCESS, cuFileGetParameterBool(CUFILE_PARAM_PROFILE_NVTX, &yes));
  EXPECT(yes);
  IS(CU_FILE_SUCCESS, cuFileGetParameterString(CUFILE_PARAM_LOGGING_LEVEL, text, sizeof text));
  EXPECT(strcmp(text, "ERROR") == 0);
  IS(CU_FILE_SUCCESS, cuFileGetParameterPosixPoolSlabArray(sizes, counts, 2));
  IS(CU_FILE_SUCCESS, cuFileDriverClose());
  // What was set is forgotten with the driver that opened with it.
  IS(CU_FILE_SUCCESS, cuFileGetParameterSizeT(CUFILE_PARAM_PROPERTIES_IO_BATCHSIZE, &size));
  EXPECT(size == 128);
}

static void write_text(const char *name, const char *text) {
  FILE *file = fopen(name, "w");
  EXPECT(file != NULL && fputs(text, file) >= 0 && fclose(file) == 0);
}

// cufile.json with comments; the environment comes before it, a setter before both. The log is where it says.
static void file_and_environment(void) {
  char json[4200], text[8300], line[600] = "";
  size_t size = 0;
  bool yes = true;
  struct stat status;
  snprintf(json, sizeof json, "%s.json", path);
  snprintf(text, sizeof text,
      "{ // a comment with \"quotes\"\n \"logging\": {\"dir\": \"%s.d\", \"level\": \"INFO\"}, /* more */\n"
      "\"properties\": {\"io_batchsize\": 32, \"allow_compat_mode\": false, \"use_poll_mode\": true,\n"
      "\"posix_pool_slab_size_kb\": [4, 64], \"posix_pool_slab_count\": [10, 20], \"rdma_dev_addr_list\": [ ]},\n"
      "\"execution\": {\"max_io_threads\": 3, \"parallel_io\": true},\n"
      "\"profile\": {\"cufile_stats\": 2}, \"fs\": {\"generic\": {\"posix_unaligned_writes\": false}} }\n",
      path);
  write_text(json, text);
  snprintf(text, sizeof text, "%s.d", path);
  EXPECT(mkdir(text, 0700) == 0);
  setenv("CUFILE_ENV_PATH_JSON", json, 1);
  setenv("CUFILE_ALLOW_COMPAT_MODE", "true", 1);
  IS(CU_FILE_SUCCESS, cuFileSetParameterSizeT(CUFILE_PARAM_EXECUTION_MAX_IO_THREADS, 2));
  IS(CU_FILE_SUCCESS, cuFileDriverOpen());
  IS(CU_FILE_SUCCESS, cuFileGetParameterSizeT(CUFILE_PARAM_PROPERTIES_IO_BATCHSIZE, &size));
  EXPECT(size == 32);
  IS(CU_FILE_SUCCESS, cuFileGetParameterSizeT(CUFILE_PARAM_EXECUTION_MAX_IO_THREADS, &size));
  EXPECT(size == 2);
  IS(CU_FILE_SUCCESS, cuFileGetParameterBool(CUFILE_PARAM_PROPERTIES_ALLOW_COMPAT_MODE, &yes));
  EXPECT(yes);
  size_t sizes[2], counts[2];
  IS(CU_FILE_SUCCESS, cuFileGetParameterPosixPoolSlabArray(sizes, counts, 2));
  EXPECT(sizes[1] == 64 && counts[1] == 20);
  CUfileStatsLevel1_t stats;
  IS(CU_FILE_SUCCESS, cuFileGetStatsL1(&stats)); // started by cufile_stats
  IS(CU_FILE_SUCCESS, cuFileStatsStop());
  IS(CU_FILE_SUCCESS, cuFileSetStatsLevel(0));
  IS(CU_FILE_SUCCESS, cuFileDriverClose());
  unsetenv("CUFILE_ENV_PATH_JSON");
  unsetenv("CUFILE_ALLOW_COMPAT_MODE");
  strcat(text, "/cufile.log");
  FILE *log = fopen(text, "r");
  bool told = false;
  while (log != NULL && fgets(line, sizeof line, log) != NULL) {
    int day, pid;
    EXPECT(sscanf(line, " %d-%*d-%*d %*d:%*d:%*d:%*d [pid=%d tid=%*d]", &day, &pid) == 2 && pid == getpid());
    told |= strstr(line, "posix_unaligned_writes") != NULL && strstr(line, "INFO") != NULL;
  }
  EXPECT(told);
  EXPECT(log != NULL && fclose(log) == 0);
  EXPECT(stat("cufile.log", &status) != 0);
}

// The size of batches that a file asks for, and the folder of the log.
static size_t asked(const char *json, const char *text, char folder[4096]) {
  size_t size = 0;
  write_text(json, text);
  setenv("CUFILE_ENV_PATH_JSON", json, 1);
  IS(CU_FILE_SUCCESS, cuFileGetParameterSizeT(CUFILE_PARAM_PROPERTIES_IO_BATCHSIZE, &size));
  IS(CU_FILE_SUCCESS, cuFileGetParameterString(CUFILE_PARAM_LOG_DIR, folder, 4096));
  unsetenv("CUFILE_ENV_PATH_JSON");
  return size;
}

// What comes before a mistake counts, nothing behind it does; characters may be written by their numbers, as Python's json does.
static void odd_files(void) {
#define FOLDER(text) "{\"properties\": {\"io_batchsize\": 32}, \"logging\": {\"dir\": \"" text "\"}}"
  static const char *const escapes[][2] = {
      {"/a\\/b \\\"c\\\" \\\\d", "/a/b \"c\" \\d"}, {"/\\u0061\\u00E9\\u20ac\\ud83d\\ude00!", "/a\u00e9\u20ac\U0001f600!"}, {"\\t\\n\\r\\b\\f", "\t\n\r\b\f"}};
  static const char *const wrong[] = {FOLDER("\\x41"), FOLDER("\\u004"), FOLDER("\\u0000"), FOLDER("\\ud83d"), FOLDER("\\ud83d\\u0041"),
      FOLDER("\\ude00"), "{\"properties\": {\"io_batchsize\": 32}, \"logging\": {\"dir\": \"/a", "{\"properties\": {\"io_batchsize\": 32}, \"logging\": {\"dir\": \"\\",
      "{\"properties\": {\"io_batchsize\": 32}, \"logging\": {\"dir\": \"\\u", "{\"properties\": {\"io_batchsize\": 32}} /* ", "{\"properties\": {\"io_batchsize\": 32", "{\"properties\": {\"io_batchsize\": 32}, \"a\"",
      "{\"properties\": {\"io_batchsize\": 32}, \"a\":", "{\"properties\": {\"io_batchsize\": 32, \"io_batchsize\": 99999999999999999999999}, \"a\": -"};
  char json[4200], text[4096], folder[4096], *deep = malloc(MIB);
  snprintf(json, sizeof json, "%s.odd.json", path);
  for (size_t i = 0; i < sizeof escapes / sizeof *escapes; i++) {
    snprintf(text, sizeof text, FOLDER("%s"), escapes[i][0]);
    EXPECT(asked(json, text, folder) == 32);
    if (strcmp(folder, escapes[i][1]) != 0) {
      printf("  '%s' is not '%s'\n", folder, escapes[i][1]);
      check_failures++;
    }
  }
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    if (asked(json, wrong[i], folder) != 32 || *folder != 0) {
      printf("  taken: %s, '%s'\n", wrong[i], folder);
      check_failures++;
    }
  }
  for (int kind = 0; kind < 3; kind++) {
    memset(deep, "[{ "[kind], MIB - 1);
    deep[MIB - 1] = 0;
    memcpy(deep, "{\"a\":", 5);
    EXPECT(asked(json, deep, folder) == 128);
  }
  free(deep);
  unlink(json);
#undef FOLDER
}

// A log that cannot be, or is a pipe that nobody reads, keeps nothing from running. The log's number of a file stays the log's.
static void odd_logs(void) {
  char log[4200], target[4200];
  snprintf(log, sizeof log, "%s.pipe", path);
  EXPECT(mkfifo(log, 0600) == 0);
  setenv("CUFILE_LOGGING_LEVEL", "TRACE", 1);
  const char *const places[] = {log, "/nowhere/at/all", "/", "/dev/full"};
  alarm(20);
  for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
    setenv("CUFILE_LOGFILE_PATH", places[i], 1);
    IS(CU_FILE_SUCCESS, cuFileDriverOpen());
    IS(CU_FILE_SUCCESS, cuFileDriverClose());
  }
  alarm(0);
  // Opened anew, it has no other number: a thread that has it in hand writes to no file of the program's.
  int numbers[2] = {-1, -1};
  for (int i = 0; i < 2; i++) {
    snprintf(target, sizeof target, "%s.log%d", path, i);
    setenv("CUFILE_LOGFILE_PATH", target, 1);
    IS(CU_FILE_SUCCESS, cuFileDriverOpen());
    for (int fd = 0; fd < 1000; fd++) {
      struct stat a, b;
      if (fstat(fd, &a) == 0 && stat(target, &b) == 0 && a.st_ino == b.st_ino && a.st_dev == b.st_dev) {
        numbers[i] = fd;
      }
    }
    IS(CU_FILE_SUCCESS, cuFileDriverClose());
  }
  EXPECT(numbers[0] >= 0 && numbers[0] == numbers[1]);
  // What has no room is counted.
  char json[4200], *many = malloc(MIB), line[4200];
  size_t used = (size_t)sprintf(many, "{");
  for (int i = 0; i < 1000; i++) {
    used += (size_t)sprintf(many + used, "\"unknown_setting_%04d\": %d,", i, i);
  }
  sprintf(many + used, "\"properties\": {\"io_batchsize\": 5000}}");
  snprintf(json, sizeof json, "%s.many.json", path);
  write_text(json, many);
  setenv("CUFILE_ENV_PATH_JSON", json, 1);
  IS(CU_FILE_SUCCESS, cuFileDriverOpen());
  IS(CU_FILE_SUCCESS, cuFileDriverClose());
  unsetenv("CUFILE_ENV_PATH_JSON");
  int named = 0, more = 0;
  FILE *file = fopen(target, "r");
  while (file != NULL && fgets(line, sizeof line, file) != NULL) {
    char *count = strstr(line, " more settings");
    named += strstr(line, "unknown_setting_") != NULL;
    if (count != NULL) {
      while (count > line && count[-1] != ' ') {
        count--;
      }
      more = atoi(count);
    }
  }
  EXPECT(file != NULL && fclose(file) == 0);
  EXPECT(named > 50 && named + more == 1001);
  free(many);
  unsetenv("CUFILE_LOGFILE_PATH");
  unsetenv("CUFILE_LOGGING_LEVEL");
  IS(CU_FILE_SUCCESS, cuFileDriverOpen()); // no log
  IS(CU_FILE_SUCCESS, cuFileDriverClose());
  unlink(log);
}

static atomic_bool setting;

static void *set_on(void *last) {
  for (size_t size = 1;; size = size % 256 + 1) {
    if (cuFileSetParameterSizeT(CUFILE_PARAM_PROPERTIES_IO_BATCHSIZE, size).err != CU_FILE_SUCCESS) {
      return NULL;
    }
    *(size_t *)last = size;
    atomic_store(&setting, true);
  }
}

// A setter that says success counts, also while another thread opens the driver.
static void setters_while_it_opens(void) {
  char log[4200], json[4200], many[4096] = "{";
  snprintf(log, sizeof log, "%s.setters.log", path);
  snprintf(json, sizeof json, "%s.setters.json", path);
  for (int i = 0; i < 200; i++) { // it has something to say meanwhile
    sprintf(many + strlen(many), "\"a%d\": %d,", i, i);
  }
  write_text(json, strcat(many, "}"));
  setenv("CUFILE_ENV_PATH_JSON", json, 1);
  setenv("CUFILE_LOGFILE_PATH", log, 1);
  setenv("CUFILE_LOGGING_LEVEL", "INFO", 1);
  for (int i = 0; i < 20; i++) {
    size_t last = 0, size = 0;
    pthread_t thread;
    atomic_store(&setting, false);
    EXPECT(pthread_create(&thread, NULL, set_on, &last) == 0);
    while (!atomic_load(&setting)) {
      sched_yield();
    }
    IS(CU_FILE_SUCCESS, cuFileDriverOpen());
    pthread_join(thread, NULL);
    IS(CU_FILE_SUCCESS, cuFileGetParameterSizeT(CUFILE_PARAM_PROPERTIES_IO_BATCHSIZE, &size));
    EXPECT(size == last);
    IS(CU_FILE_SUCCESS, cuFileDriverClose());
  }
  unsetenv("CUFILE_ENV_PATH_JSON");
  unsetenv("CUFILE_LOGFILE_PATH");
  unsetenv("CUFILE_LOGGING_LEVEL");
}

// ---- handles and buffers

static void handles(void) {
  CUfileHandle_t fh = NULL, other = NULL;
  CUfileFSOps_t ops = {0};
  int fd = open_file(O_RDWR);
  CUfileDescr_t d = {.type = CU_FILE_HANDLE_TYPE_OPAQUE_FD, .handle.fd = fd};
  IS(CU_FILE_INVALID_VALUE, cuFileHandleRegister(NULL, &d));
  IS(CU_FILE_INVALID_VALUE, cuFileHandleRegister(&fh, NULL));
  IS(CU_FILE_SUCCESS, cuFileHandleRegister(&fh, &d));
  EXPECT(cuFileUseCount() == 1);
  IS(CU_FILE_HANDLE_ALREADY_REGISTERED, cuFileHandleRegister(&other, &d));
  d.handle.fd = dup(fd);
  IS(CU_FILE_SUCCESS, cuFileHandleRegister(&other, &d));
  cuFileHandleDeregister(other);
  GIVES(-1, cuFileRead(other, memory, 10, 0, 0));
  EXPECT(errno == EINVAL);
  close(d.handle.fd);
  IS(CU_FILE_INVALID_VALUE, cuFileHandleRegister(&other, &d));
  d.handle.fd = -1;
  IS(CU_FILE_INVALID_VALUE, cuFileHandleRegister(&other, &d));
  d = (CUfileDescr_t){.type = CU_FILE_HANDLE_TYPE_OPAQUE_WIN32, .handle.fd = fd};
  IS(CU_FILE_IO_NOT_SUPPORTED, cuFileHandleRegister(&other, &d));
  d = (CUfileDescr_t){.type = CU_FILE_HANDLE_TYPE_USERSPACE_FS, .handle.fd = fd, .fs_ops = &ops};
  IS(CU_FILE_IO_NOT_SUPPORTED, cuFileHandleRegister(&other, &d));
  d = (CUfileDescr_t){.type = CU_FILE_HANDLE_TYPE_OPAQUE_FD, .handle.fd = open("/dev/null", O_RDWR | O_CLOEXEC)};
  IS(CU_FILE_INVALID_FILE_TYPE, cuFileHandleRegister(&other, &d));
  close(d.handle.fd);
  d.handle.fd = open_file(O_RDWR | O_APPEND);
  IS(CU_FILE_INVALID_FILE_OPEN_FLAG, cuFileHandleRegister(&other, &d));
  close(d.handle.fd);
  cuFileHandleDeregister(fh);
  cuFileHandleDeregister(fh);
  cuFileHandleDeregister(NULL);
  cuFileHandleDeregister((void *)content);
  close(fd);
  IS(CU_FILE_SUCCESS, cuFileDriverClose());
}

static void buffers(void) {
  IS(CU_FILE_DRIVER_CLOSING, cuFileBufDeregister(memory));
  IS(CU_FILE_SUCCESS, cuFileBufRegister(memory, 65536, 0));
  IS(CU_FILE_MEMORY_ALREADY_REGISTERED, cuFileBufRegister(memory, 65536, 0));
  IS(CU_FILE_SUCCESS, cuFileBufRegister(memory + 4096, 4096, CU_FILE_RDMA_REGISTER));
  IS(CU_FILE_INVALID_VALUE, cuFileBufRegister(NULL, 4096, 0));
  IS(CU_FILE_INVALID_VALUE, cuFileBufRegister(memory + 65536, 0, 0));
  IS(CU_FILE_MEMORY_NOT_REGISTERED, cuFileBufDeregister(memory + 1));
  int fd = open_file(O_RDONLY);
  CUfileHandle_t fh = register_file(fd);
  GIVES(65536, cuFileRead(fh, memory, 65536, 5, 0));
  EXPECT(memcmp(memory, content + 5, 65536) == 0);
  GIVES(100, cuFileRead(fh, memory, 100, 7, 65436));
  EXPECT(memcmp(memory + 65436, content + 7, 100) == 0);
  GIVES(-CU_FILE_INVALID_MAPPING_RANGE, cuFileRead(fh, memory, 101, 7, 65436));
  GIVES(-CU_FILE_INVALID_MAPPING_RANGE, cuFileRead(fh, memory, 1, 0, 65536));
  IS(CU_FILE_SUCCESS, cuFileBufDeregister(memory));
  IS(CU_FILE_SUCCESS, cuFileBufDeregister(memory + 4096));
  IS(CU_FILE_MEMORY_NOT_REGISTERED, cuFileBufDeregister(memory));
  IS(CU_FILE_INVALID_VALUE, cuFileBufDeregister(NULL));
  cuFileHandleDeregister(fh);
  close(fd);
  IS(CU_FILE_SUCCESS, cuFileDriverClose());
}

// ---- transfers

static void transfers_of(int flags) {
  int fd = open_file(O_RDWR | flags);
  CUfileHandle_t fh = register_file(fd);
  static const size_t sizes[] = {1, 511, 512, 4096, 5000, 65536, MIB - 1, MIB, 3 * MIB + 5, 8 * MIB};
  static const off_t offsets[] = {0, 1, 4096, 4097, MIB + 3};
  for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
    for (size_t o = 0; o < sizeof offsets / sizeof *offsets; o++) {
      for (off_t at = 0; at < 8192; at += 4095) {
        memset(memory, 0, (size_t)at + sizes[s] + 1);
        GIVES(sizes[s], cuFileRead(fh, memory, sizes[s], offsets[o], at));
        EXPECT(memcmp(memory + at, content + offsets[o], sizes[s]) == 0);
        EXPECT(memory[at + (off_t)sizes[s]] == 0);
      }
    }
  }
  GIVES(0, cuFileRead(fh, memory, 0, 0, 0));
  GIVES(777, cuFileRead(fh, memory, MIB, BYTES - 777, 0));
  GIVES(777 + 8 * MIB, cuFileRead(fh, memory, 9 * MIB, BYTES - 777 - 8 * MIB, 0));
  GIVES(0, cuFileRead(fh, memory, 10, BYTES, 0));
  GIVES(0, cuFileRead(fh, memory, 10, 2 * BYTES, 0));
  GIVES(-1, cuFileRead(fh, memory, 10, -1, 0));
  EXPECT(errno == EINVAL);
  GIVES(-CU_FILE_INVALID_VALUE, cuFileRead(fh, memory, 10, 0, -1));
  GIVES(-CU_FILE_INVALID_VALUE, cuFileRead(fh, NULL, 10, 0, 0));
  GIVES(-1, cuFileRead(fh, (void *)8, 10, 0, 0));
  EXPECT(errno == EFAULT);
  GIVES(-1, cuFileRead(NULL, memory, 10, 0, 0));
  EXPECT(errno == EINVAL);
  GIVES(-1, cuFileRead((CUfileHandle_t)memory, memory, 10, 0, 0));
  static const size_t written[] = {1, 4096, 70000, 3 * MIB + 1};
  for (size_t s = 0; s < sizeof written / sizeof *written; s++) {
    for (size_t i = 0; i < written[s]; i++) {
      memory[3 + i] = content[4097 + i] = (unsigned char)(i * 13 + s);
    }
    GIVES(written[s], cuFileWrite(fh, memory, written[s], 4097, 3));
    GIVES(BYTES, cuFileRead(fh, memory, BYTES, 0, 0));
    EXPECT(memcmp(memory, content, BYTES) == 0);
  }
  GIVES(100, cuFileWrite(fh, memory, 100, BYTES + 1000, 0));
  EXPECT(lseek(fd, 0, SEEK_END) == BYTES + 1100);
  EXPECT(ftruncate(fd, BYTES) == 0);
  cuFileHandleDeregister(fh);
  close(fd);
  int reader = open_file(O_RDONLY | flags);
  fh = register_file(reader);
  GIVES(-1, cuFileWrite(fh, memory, 4096, 0, 0));
  EXPECT(errno == EBADF);
  cuFileHandleDeregister(fh);
  close(reader);
  IS(CU_FILE_SUCCESS, cuFileDriverClose());
  renew_file();
}

static void through_the_page_cache(void) {
  transfers_of(0);
}

static void past_the_page_cache(void) {
  int fd = open(path, O_RDONLY | O_DIRECT | O_CLOEXEC);
  if (fd < 0) {
    printf("  no O_DIRECT here\n");
    return;
  }
  close(fd);
  transfers_of(O_DIRECT);
}

// What a program wants on the disk when a write returns is there, aligned or not: both descriptors have the flag.
static void synchronous_writes(void) {
  struct stat mine, other;
  int fd = open(path, O_RDWR | O_DIRECT | O_DSYNC | O_CLOEXEC), found = 0;
  if (fd < 0) {
    printf("  no O_DIRECT here\n");
    return;
  }
  CUfileHandle_t fh = register_file(fd);
  EXPECT(fstat(fd, &mine) == 0);
  for (int i = 0; i < 64; i++) {
    if (i != fd && fstat(i, &other) == 0 && other.st_ino == mine.st_ino && other.st_dev == mine.st_dev) {
      found++;
      EXPECT((fcntl(i, F_GETFL) & (O_DSYNC | O_DIRECT)) == O_DSYNC);
    }
  }
  EXPECT(found == 1);
  GIVES(5, cuFileWrite(fh, content + 3, 5, 3, 0));
  cuFileHandleDeregister(fh);
  close(fd);
  IS(CU_FILE_SUCCESS, cuFileDriverClose());
}

// ---- batches

static CUfileIOParams_t request(CUfileHandle_t fh, void *base, off_t offset, off_t at, size_t bytes, long cookie) {
  CUfileIOParams_t p = {.mode = CUFILE_BATCH, .fh = fh, .opcode = CUFILE_READ, .cookie = (void *)cookie};
  p.u.batch.devPtr_base = base;
  p.u.batch.file_offset = offset;
  p.u.batch.devPtr_offset = at;
  p.u.batch.size = bytes;
  return p;
}

enum { MANY = 100 };

static void batch_of(CUfileHandle_t fh, void *base) {
  CUfileBatchHandle_t id;
  CUfileIOParams_t params[MANY + 1];
  CUfileIOEvents_t events[MANY];
  bool seen[MANY] = {false};
  struct timespec second = {.tv_sec = 1};
  unsigned nr = MANY, got = 0;
  IS(CU_FILE_SUCCESS, cuFileBatchIOSetUp(&id, MANY));
  IS(CU_FILE_SUCCESS, cuFileBatchIOGetStatus(id, 0, &nr, events, &second));
  EXPECT(nr == 0);
  for (int i = 0; i <= MANY; i++) {
    params[i] = request(fh, base, i * 70001, i * 70000, i % 3 == 0 ? 4096 : 70000, i);
  }
  IS(CU_FILE_BATCH_FULL, cuFileBatchIOSubmit(id, MANY + 1, params, 0));
  IS(CU_FILE_SUCCESS, cuFileBatchIOSubmit(id, MANY, params, 0));
  IS(CU_FILE_BATCH_FULL, cuFileBatchIOSubmit(id, 1, params, 0));
  while (got < MANY && check_failures == 0) {
    nr = 7;
    IS(CU_FILE_SUCCESS, cuFileBatchIOGetStatus(id, 1, &nr, events, NULL));
    EXPECT(nr >= 1 && nr <= 7);
    for (unsigned i = 0; i < nr; i++) {
      long cookie = (long)events[i].cookie;
      EXPECT(!seen[cookie] && events[i].status == CUFILE_COMPLETE && events[i].ret == params[cookie].u.batch.size);
      seen[cookie] = true;
    }
    got += nr;
  }
  nr = MANY;
  IS(CU_FILE_SUCCESS, cuFileBatchIOGetStatus(id, 1, &nr, events, NULL)); // does not wait for what is not there
  EXPECT(nr == 0);
  cuFileBatchIODestroy(id);
  cuFileBatchIODestroy(id);
}

static void batches(void) {
  CUfileBatchHandle_t id = NULL;
  CUfileIOEvents_t events[8];
  int fd = open_file(O_RDWR);
  CUfileHandle_t fh = register_file(fd);
  unsigned nr = 8;
  memset(memory, 0, BYTES);
  batch_of(fh, memory);
  for (int i = 0; i < MANY; i++) {
    EXPECT(memcmp(memory + i * 70000, content + i * 70001, i % 3 == 0 ? 4096 : 70000) == 0);
  }
  IS(CU_FILE_INVALID_VALUE, cuFileBatchIOSetUp(NULL, 4));
  IS(CU_FILE_INVALID_VALUE, cuFileBatchIOSetUp(&id, 0));
  IS(CU_FILE_INVALID_VALUE, cuFileBatchIOSetUp(&id, 129));
  IS(CU_FILE_SUCCESS, cuFileBatchIOSetUp(&id, 8));
  CUfileIOParams_t bad[] = {request(fh, memory, BYTES, 0, 10, 1), request(fh, memory, -1, 0, 10, 2), request(fh, memory, 0, -1, 10, 3),
      request(fh, memory, 0, 0, 0, 4), request(fh, memory, BYTES - 5, 0, 10, 5)};
  static const ssize_t results[] = {0, -EINVAL, -CU_FILE_INVALID_VALUE, 0, 5};
  IS(CU_FILE_SUCCESS, cuFileBatchIOSubmit(id, 5, bad, 0));
  IS(CU_FILE_SUCCESS, cuFileBatchIOGetStatus(id, 5, &nr, events, NULL));
  EXPECT(nr == 5);
  for (unsigned i = 0; i < nr; i++) {
    const ssize_t result = results[(long)events[i].cookie - 1];
    EXPECT((ssize_t)events[i].ret == result && events[i].status == (result < 0 ? CUFILE_FAILED : CUFILE_COMPLETE));
  }
  // A time that never comes is waited for.
  struct timespec never = {.tv_sec = INT64_MAX, .tv_nsec = 999999999};
  CUfileIOParams_t whole = request(fh, memory, 0, 0, BYTES, 6);
  IS(CU_FILE_SUCCESS, cuFileBatchIOSubmit(id, 1, &whole, 77)); // flags mean nothing
  nr = 1;
  IS(CU_FILE_SUCCESS, cuFileBatchIOGetStatus(id, 1, &nr, events, &never));
  EXPECT(nr == 1 && events[0].ret == BYTES);
  bad[0].mode = 0;
  IS(CU_FILE_INVALID_VALUE, cuFileBatchIOSubmit(id, 1, bad, 0));
  bad[1].fh = NULL;
  IS(CU_FILE_INTERNAL_BATCH_SUBMIT_ERROR, cuFileBatchIOSubmit(id, 1, bad + 1, 0));
  IS(CU_FILE_INVALID_VALUE, cuFileBatchIOSubmit(id, 0, bad, 0));
  IS(CU_FILE_INVALID_VALUE, cuFileBatchIOSubmit(id, 1, NULL, 0));
  nr = 1;
  IS(CU_FILE_INVALID_VALUE, cuFileBatchIOGetStatus(id, 2, &nr, events, NULL));
  IS(CU_FILE_INVALID_VALUE, cuFileBatchIOGetStatus(id, 0, NULL, events, NULL));
  IS(CU_FILE_INVALID_VALUE, cuFileBatchIOGetStatus(NULL, 0, &nr, events, NULL));
  IS(CU_FILE_SUCCESS, cuFileBatchIOCancel(id));
  IS(CU_FILE_INVALID_VALUE, cuFileBatchIOCancel(NULL));
  cuFileBatchIODestroy(id);
  cuFileHandleDeregister(fh);
  close(fd);
  IS(CU_FILE_SUCCESS, cuFileDriverClose());
}

// What was not begun is cancelled, the rest is complete, and every request ends once.
static void cancelled(void) {
  CUfileBatchHandle_t id;
  CUfileIOParams_t params[MANY];
  CUfileIOEvents_t events[MANY];
  int fd = open_file(O_RDWR);
  CUfileHandle_t fh = register_file(fd);
  for (int turn = 0; turn < 20; turn++) {
    unsigned nr = MANY;
    IS(CU_FILE_SUCCESS, cuFileBatchIOSetUp(&id, MANY));
    for (int i = 0; i < MANY; i++) {
      params[i] = request(fh, memory, 0, i * 65536, 65536, i);
    }
    IS(CU_FILE_SUCCESS, cuFileBatchIOSubmit(id, MANY, params, 0));
    IS(CU_FILE_SUCCESS, cuFileBatchIOCancel(id));
    IS(CU_FILE_SUCCESS, cuFileBatchIOGetStatus(id, MANY, &nr, events, NULL));
    EXPECT(nr == MANY);
    for (unsigned i = 0; i < nr; i++) {
      EXPECT(events[i].status == CUFILE_CANCELED ? events[i].ret == 0 : events[i].status == CUFILE_COMPLETE && events[i].ret == 65536);
    }
    IS(CU_FILE_SUCCESS, cuFileBatchIOSubmit(id, MANY, params, 0));
    // Submitted again without a look at what was cancelled: only the new ones are told.
    IS(CU_FILE_SUCCESS, cuFileBatchIOCancel(id));
    for (int i = 0; i < MANY; i++) {
      params[i].cookie = (void *)(long)(MANY + i);
    }
    IS(CU_FILE_SUCCESS, cuFileBatchIOSubmit(id, MANY - 1, params, 0));
    nr = MANY;
    IS(CU_FILE_SUCCESS, cuFileBatchIOGetStatus(id, MANY - 1, &nr, events, NULL));
    EXPECT(nr == MANY - 1);
    for (unsigned i = 0; i < nr; i++) {
      EXPECT((long)events[i].cookie >= MANY && events[i].status == CUFILE_COMPLETE && events[i].ret == 65536);
    }
    IS(CU_FILE_SUCCESS, cuFileBatchIOSubmit(id, MANY, params, 0));
    IS(CU_FILE_BATCH_FULL, cuFileBatchIOSubmit(id, 1, params, 0));
    cuFileBatchIODestroy(id);
  }
  cuFileHandleDeregister(fh);
  close(fd);
  IS(CU_FILE_SUCCESS, cuFileDriverClose());
}

// ---- statistics

static void statistics(void) {
  static CUfileStatsLevel3_t s;
  const CUfileStatsLevel1_t *basic = &s.detailed.basic;
  int level = 9;
  IS(CU_FILE_DRIVER_NOT_INITIALIZED, cuFileStatsStart());
  IS(CU_FILE_SUCCESS, cuFileDriverOpen());
  IS(CU_FILE_INTERNAL_ERROR, cuFileStatsStart());
  IS(CU_FILE_INVALID_VALUE, cuFileSetStatsLevel(4));
  IS(CU_FILE_SUCCESS, cuFileSetStatsLevel(3));
  IS(CU_FILE_SUCCESS, cuFileGetStatsLevel(&level));
  EXPECT(level == 3);
  IS(CU_FILE_INVALID_VALUE, cuFileGetStatsLevel(NULL));
  IS(CU_FILE_SUCCESS, cuFileStatsStart());
  int fd = open_file(O_RDWR);
  CUfileHandle_t fh = register_file(fd);
  GIVES(5000, cuFileRead(fh, memory, 5000, 1, 0));
  GIVES(100, cuFileRead(fh, memory, 100, 1, 0));
  GIVES(-1, cuFileRead(fh, memory, 100, -1, 0));
  GIVES(100, cuFileWrite(fh, content, 100, 0, 0));
  IS(CU_FILE_SUCCESS, cuFileGetStatsL3(&s));
  EXPECT(basic->read_ops.ok == 2 && basic->read_ops.err == 1 && basic->write_ops.ok == 1);
  EXPECT(basic->read_bytes == 5100 && basic->write_bytes == 100 && basic->hdl_register_ops.ok == 1);
  EXPECT(s.detailed.read_size_kb_hist[0] == 1 && s.detailed.read_size_kb_hist[1] == 1 && s.detailed.write_size_kb_hist[0] == 1);
  IS(CU_FILE_INVALID_VALUE, cuFileGetStatsL3(NULL));
  IS(CU_FILE_SUCCESS, cuFileStatsReset());
  CUfileStatsLevel1_t one;
  IS(CU_FILE_SUCCESS, cuFileGetStatsL1(&one));
  EXPECT(one.read_ops.ok == 0 && one.read_bytes == 0);
  CUfileBatchHandle_t id;
  CUfileIOParams_t params[] = {request(fh, memory, 0, 0, 10, 1), request(fh, memory, 0, 10, 10, 2), request(fh, memory, 0, 20, 10, 3)};
  CUfileIOEvents_t events[3];
  unsigned nr = 3;
  IS(CU_FILE_SUCCESS, cuFileBatchIOSetUp(&id, 3));
  IS(CU_FILE_SUCCESS, cuFileBatchIOSubmit(id, 3, params, 0));
  IS(CU_FILE_SUCCESS, cuFileBatchIOGetStatus(id, 3, &nr, events, NULL));
  cuFileBatchIODestroy(id);
  IS(CU_FILE_SUCCESS, cuFileGetStatsL1(&one));
  EXPECT(one.batch_submit_ops.ok == 1 && one.batch_total_submit_ops.ok == 3 && one.batch_processed_ops.ok == 0);
  EXPECT(one.batch_posix_enqueued_ops.ok == 3 && one.batch_posix_processed_ops.ok == 3 && one.batch_enqueued_ops.ok == 0);
  IS(CU_FILE_SUCCESS, cuFileStatsStop());
  IS(CU_FILE_INVALID_VALUE, cuFileGetStatsL1(&one));
  IS(CU_FILE_SUCCESS, cuFileSetStatsLevel(0));
  cuFileHandleDeregister(fh);
  close(fd);
  IS(CU_FILE_SUCCESS, cuFileDriverClose());
}

// ---- forks, settings, threads

static void in_a_fork(void) {
  CUfileHandle_t fh = NULL;
  CUfileDescr_t d = {.type = CU_FILE_HANDLE_TYPE_OPAQUE_FD, .handle.fd = open_file(O_RDONLY)};
  IS(CU_FILE_DRIVER_NOT_INITIALIZED, cuFileDriverOpen());
  IS(CU_FILE_DRIVER_NOT_INITIALIZED, cuFileHandleRegister(&fh, &d));
  GIVES(-CU_FILE_DRIVER_NOT_INITIALIZED, cuFileRead(fh, memory, 10, 0, 0));
  EXPECT(cuFileUseCount() == 0);
}

static void opens_by_itself(void) {
  int fd = open_file(O_RDONLY);
  CUfileHandle_t fh = register_file(fd);
  GIVES(10, cuFileRead(fh, memory, 10, 0, 0));
}

static void forks(void) {
  in_child(opens_by_itself); // the parent has opened nothing
  IS(CU_FILE_SUCCESS, cuFileDriverOpen());
  in_child(in_a_fork);
  IS(CU_FILE_SUCCESS, cuFileDriverClose());
}

static void without_compatibility(void) {
  CUfileHandle_t fh = NULL;
  CUfileDescr_t d = {.type = CU_FILE_HANDLE_TYPE_OPAQUE_FD, .handle.fd = open_file(O_RDONLY)};
  IS(CU_FILE_SUCCESS, cuFileSetParameterBool(CUFILE_PARAM_PROPERTIES_ALLOW_COMPAT_MODE, false));
  IS(CU_FILE_IO_NOT_SUPPORTED, cuFileHandleRegister(&fh, &d));
  IS(CU_FILE_SUCCESS, cuFileDriverClose());
  close(d.handle.fd);
}

static void *mixed(void *seed) {
  unsigned random = (unsigned)(uintptr_t)seed;
  int fd = open_file(O_RDONLY);
  CUfileHandle_t fh = register_file(fd);
  unsigned char *mine = malloc(MIB);
  for (int i = 0; i < 300; i++) {
    random = random * 1664525 + 1013904223;
    const size_t size = random % 3 == 0 ? MIB - random % 7 : random % 60000 + 1;
    const off_t offset = random / 7 % (BYTES - MIB);
    if (i % 50 == 0) {
      cuFileHandleDeregister(fh);
      fh = register_file(fd);
      IS(CU_FILE_SUCCESS, cuFileBufRegister(mine, MIB, 0));
    }
    GIVES(size, cuFileRead(fh, mine, size, offset, 0));
    EXPECT(memcmp(mine, content + offset, size) == 0);
    if (i % 50 == 49) {
      IS(CU_FILE_SUCCESS, cuFileBufDeregister(mine));
    }
  }
  free(mine);
  cuFileHandleDeregister(fh);
  close(fd);
  return NULL;
}

static atomic_bool enough;

static void *reads_whatever_closes(void *unused) {
  unsigned char *mine = malloc(8 * MIB);
  int fd = open_file(O_RDONLY);
  while (!atomic_load(&enough)) {
    CUfileHandle_t fh = NULL;
    CUfileDescr_t d = {.type = CU_FILE_HANDLE_TYPE_OPAQUE_FD, .handle.fd = fd};
    if (cuFileHandleRegister(&fh, &d).err == CU_FILE_SUCCESS) {
      for (int i = 0; i < 3; i++) {
        ssize_t n = cuFileRead(fh, mine, 8 * MIB, 5, 0);
        EXPECT(n == 8 * MIB ? memcmp(mine, content + 5, 8 * MIB) == 0 : n == -1 && errno == EINVAL);
      }
      cuFileHandleDeregister(fh);
    }
  }
  close(fd);
  free(mine);
  return unused;
}

static int threads_here(void) {
  int count = 0;
  DIR *tasks = opendir("/proc/self/task");
  while (readdir(tasks) != NULL) {
    count++;
  }
  closedir(tasks);
  return count;
}

// The driver closes while others read: who reads goes on or is refused, and no thread of the library stays.
static void closes_beside_reads(void) {
  pthread_t readers[3];
  const int before = threads_here();
  atomic_store(&enough, false);
  write_text("cufile.json", "{\"execution\": {\"max_io_threads\": 16}}");
  setenv("CUFILE_ENV_PATH_JSON", "cufile.json", 1);
  for (int i = 0; i < 3; i++) {
    pthread_create(&readers[i], NULL, reads_whatever_closes, NULL);
  }
  for (int i = 0; i < 150; i++) {
    cuFileDriverOpen();
    usleep(500);
    while (cuFileDriverClose().err == CU_FILE_SUCCESS) {
    }
  }
  atomic_store(&enough, true);
  for (int i = 0; i < 3; i++) {
    pthread_join(readers[i], NULL);
  }
  while (cuFileDriverClose().err == CU_FILE_SUCCESS) {
  }
  // The kernel lists threads a little longer than others wait for them.
  for (int i = 0; i < 1000 && threads_here() > before; i++) {
    usleep(1000);
  }
  EXPECT(threads_here() <= before); // some of an earlier test may have been listed still
  setenv("CUFILE_ENV_PATH_JSON", "/nowhere.json", 1);
}

static void many_threads(void) {
  enum { THREADS = 8 };
  pthread_t threads[THREADS];
  IS(CU_FILE_SUCCESS, cuFileDriverOpen());
  for (uintptr_t i = 0; i < THREADS; i++) {
    EXPECT(pthread_create(&threads[i], NULL, mixed, (void *)i) == 0);
  }
  for (int i = 0; i < THREADS; i++) {
    pthread_join(threads[i], NULL);
  }
  IS(CU_FILE_SUCCESS, cuFileDriverClose());
}

// ---- memory of a GPU, and everything at once

typedef unsigned long long device_address;

// X(name, arguments): the driver's functions that these tests call.
#define CUDA(X)                                                         \
  X(cuInit, (unsigned))                                                 \
  X(cuDeviceGet, (int *, int))                                          \
  X(cuDevicePrimaryCtxRetain, (void **, int))                           \
  X(cuCtxSetCurrent, (void *))                                          \
  X(cuMemAlloc_v2, (device_address *, size_t))                          \
  X(cuMemFree_v2, (device_address))                                     \
  X(cuMemcpyHtoDAsync_v2, (device_address, const void *, size_t, CUstream)) \
  X(cuMemcpyDtoHAsync_v2, (void *, device_address, size_t, CUstream))   \
  X(cuStreamCreateWithPriority, (CUstream *, unsigned, int))            \
  X(cuStreamDestroy_v2, (CUstream))                                     \
  X(cuStreamSynchronize, (CUstream))                                    \
  X(cuLaunchHostFunc, (CUstream, void (*)(void *), void *))             \
  X(cuThreadExchangeStreamCaptureMode, (int *))

static struct {
#define MEMBER(name, arguments) CUresult(*name) arguments;
  CUDA(MEMBER)
#undef MEMBER
} cuda;

// Of the stand-in only.
static struct {
  void (*capture_elsewhere)(int begun);
  void (*pretend)(device_address mapped, size_t piece, int other_context);
  int (*calls)(const char *name);
  void (*block)(const char *name);
  void (*fail)(const char *name, int nth, int code);
} fake;

static void *context;
static CUstream stream;
static device_address gpu; // BYTES and a little more

#define TRUE_OF_CUDA(call) EXPECT((call) == 0)

static void have_cuda(const char *library) {
  void *driver = dlopen(library, RTLD_NOW | RTLD_LOCAL);
  int device;
  if (driver == NULL) {
    fprintf(stderr, "%s\n", dlerror());
    exit(2);
  }
#define FIND(name, arguments) *(void **)&cuda.name = dlsym(driver, #name);
  CUDA(FIND)
#undef FIND
  *(void **)&fake.capture_elsewhere = dlsym(driver, "fake_capture_elsewhere");
  *(void **)&fake.pretend = dlsym(driver, "fake_pretend");
  *(void **)&fake.calls = dlsym(driver, "fake_calls");
  *(void **)&fake.block = dlsym(driver, "fake_block");
  *(void **)&fake.fail = dlsym(driver, "fake_fail");
  TRUE_OF_CUDA(cuda.cuInit(0));
  TRUE_OF_CUDA(cuda.cuDeviceGet(&device, 0));
  TRUE_OF_CUDA(cuda.cuDevicePrimaryCtxRetain(&context, device));
  TRUE_OF_CUDA(cuda.cuCtxSetCurrent(context));
  TRUE_OF_CUDA(cuda.cuStreamCreateWithPriority(&stream, 1, 0));
  TRUE_OF_CUDA(cuda.cuMemAlloc_v2(&gpu, BYTES + 16384));
}

static void *at_gpu(size_t offset) {
  return (void *)(uintptr_t)(gpu + offset);
}

static void fill_gpu(const void *from, size_t bytes) {
  TRUE_OF_CUDA(cuda.cuMemcpyHtoDAsync_v2(gpu, from, bytes, stream));
  TRUE_OF_CUDA(cuda.cuStreamSynchronize(stream));
}

// Into memory.
static void look_at_gpu(size_t bytes) {
  TRUE_OF_CUDA(cuda.cuMemcpyDtoHAsync_v2(memory, gpu, bytes, stream));
  TRUE_OF_CUDA(cuda.cuStreamSynchronize(stream));
}

static void clear_gpu(size_t bytes) {
  memset(memory, 0, bytes);
  fill_gpu(memory, bytes);
}

static void device_transfers_of(int flags) {
  int fd = open_file(O_RDWR | flags);
  CUfileHandle_t fh = register_file(fd);
  static const size_t sizes[] = {1, 4096, 5000, 524288, 524289, MIB, 3 * MIB + 5, 8 * MIB};
  static const off_t offsets[] = {0, 4097, MIB};
  for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
    for (size_t o = 0; o < sizeof offsets / sizeof *offsets; o++) {
      for (off_t at = 0; at < 8192; at += 4095) {
        clear_gpu((size_t)at + sizes[s] + 1);
        GIVES(sizes[s], cuFileRead(fh, at_gpu(0), sizes[s], offsets[o], at));
        look_at_gpu((size_t)at + sizes[s] + 1);
        EXPECT(memcmp(memory + at, content + offsets[o], sizes[s]) == 0);
        EXPECT(memory[at + (off_t)sizes[s]] == 0);
      }
    }
  }
  GIVES(777, cuFileRead(fh, at_gpu(0), MIB, BYTES - 777, 0));
  GIVES(777 + 8 * MIB, cuFileRead(fh, at_gpu(0), 9 * MIB, BYTES - 777 - 8 * MIB, 0));
  GIVES(0, cuFileRead(fh, at_gpu(0), 10, BYTES, 0));
  GIVES(0, cuFileRead(fh, at_gpu(0), 0, 0, 0));
  GIVES(-1, cuFileRead(fh, at_gpu(0), 10, -1, 0));
  GIVES(-CU_FILE_CUDA_POINTER_RANGE_ERROR, cuFileRead(fh, at_gpu(0), 10, 0, 100 * MIB));
  GIVES(-CU_FILE_CUDA_POINTER_RANGE_ERROR, cuFileRead(fh, at_gpu(100), 100 * MIB, 0, 0));
  for (size_t i = 0; i < 3 * MIB + 1; i++) {
    content[4097 + i] = (unsigned char)(i * 31);
  }
  fill_gpu(content + 4097 - 3, 3 * MIB + 4);
  GIVES(3 * MIB + 1, cuFileWrite(fh, at_gpu(0), 3 * MIB + 1, 4097, 3));
  GIVES(BYTES, cuFileRead(fh, memory, BYTES, 0, 0));
  EXPECT(memcmp(memory, content, BYTES) == 0);
  cuFileHandleDeregister(fh);
  close(fd);
  renew_file();
}

static void device_transfers(void) {
  device_transfers_of(0);
}

static void device_transfers_past_the_page_cache(void) {
  device_transfers_of(O_DIRECT);
}

static void device_buffers(void) {
  int fd = open_file(O_RDWR);
  CUfileHandle_t fh = register_file(fd);
  IS(CU_FILE_SUCCESS, cuFileBufRegister(at_gpu(0), 65536, 0));
  IS(CU_FILE_MEMORY_ALREADY_REGISTERED, cuFileBufRegister(at_gpu(0), 65536, 0));
  IS(CU_FILE_SUCCESS, cuFileBufRegister(at_gpu(4096), 65536, 0));
  IS(CU_FILE_CUDA_POINTER_RANGE_ERROR, cuFileBufRegister(at_gpu(8192), 100 * MIB, 0));
  GIVES(65536, cuFileRead(fh, at_gpu(0), 65536, 5, 0));
  GIVES(-CU_FILE_INVALID_MAPPING_RANGE, cuFileRead(fh, at_gpu(0), 65536, 5, 1));
  look_at_gpu(65536);
  EXPECT(memcmp(memory, content + 5, 65536) == 0);
  IS(CU_FILE_SUCCESS, cuFileBufDeregister(at_gpu(0)));
  IS(CU_FILE_SUCCESS, cuFileBufDeregister(at_gpu(4096)));
  IS(CU_FILE_MEMORY_NOT_REGISTERED, cuFileBufDeregister(at_gpu(0)));
  cuFileHandleDeregister(fh);
  close(fd);
}

static void device_batches(void) {
  int fd = open_file(O_RDWR);
  CUfileHandle_t fh = register_file(fd);
  clear_gpu(BYTES);
  batch_of(fh, at_gpu(0));
  look_at_gpu(BYTES);
  for (int i = 0; i < MANY; i++) {
    EXPECT(memcmp(memory + i * 70000, content + i * 70001, i % 3 == 0 ? 4096 : 70000) == 0);
  }
  cuFileHandleDeregister(fh);
  close(fd);
}

// A read that must be aligned stays so beside one that is not: there is no way through the page cache here.
static void batches_of_two_kinds(void) {
  struct rlimit files, few;
  CUfileBatchHandle_t id;
  CUfileIOParams_t params[16];
  CUfileIOEvents_t events[16];
  unsigned nr = 16;
  int fd = open_file(O_RDWR), direct = open(path, O_RDONLY | O_DIRECT | O_CLOEXEC);
  if (direct < 0) {
    close(fd);
    printf("  no O_DIRECT here\n");
    return;
  }
  CUfileHandle_t fh = register_file(fd);
  EXPECT(getrlimit(RLIMIT_NOFILE, &files) == 0);
  few = (struct rlimit){.rlim_cur = (rlim_t)direct + 1, .rlim_max = files.rlim_max};
  EXPECT(setrlimit(RLIMIT_NOFILE, &few) == 0);
  CUfileHandle_t aligned = register_file(direct);
  EXPECT(setrlimit(RLIMIT_NOFILE, &files) == 0);
  clear_gpu(16384);
  for (int i = 0; i < 16; i++) { // more than there are threads, so that some are together
    params[i] = i % 2 == 0 ? request(fh, at_gpu(0), 3, 0, 100, i) : request(aligned, at_gpu(0), 4096, 100, 4096, i);
  }
  IS(CU_FILE_SUCCESS, cuFileBatchIOSetUp(&id, 16));
  IS(CU_FILE_SUCCESS, cuFileBatchIOSubmit(id, 16, params, 0));
  IS(CU_FILE_SUCCESS, cuFileBatchIOGetStatus(id, 16, &nr, events, NULL));
  EXPECT(nr == 16);
  for (unsigned i = 0; i < nr; i++) {
    EXPECT(events[i].status == CUFILE_COMPLETE);
  }
  look_at_gpu(4196);
  EXPECT(memcmp(memory, content + 3, 100) == 0 && memcmp(memory + 100, content + 4096, 4096) == 0);
  cuFileBatchIODestroy(id);
  cuFileHandleDeregister(fh);
  cuFileHandleDeregister(aligned);
  close(fd);
  close(direct);
}

static void device_statistics(void) {
  static CUfileStatsLevel3_t s;
  IS(CU_FILE_SUCCESS, cuFileDriverOpen());
  IS(CU_FILE_SUCCESS, cuFileSetStatsLevel(3));
  IS(CU_FILE_SUCCESS, cuFileStatsStart());
  int fd = open_file(O_RDWR);
  CUfileHandle_t fh = register_file(fd);
  GIVES(5000, cuFileRead(fh, at_gpu(0), 5000, 1, 0));
  IS(CU_FILE_SUCCESS, cuFileBufRegister(at_gpu(0), 65536, 0));
  IS(CU_FILE_SUCCESS, cuFileBufDeregister(at_gpu(0)));
  IS(CU_FILE_SUCCESS, cuFileGetStatsL3(&s));
  const CUfilePerGpuStats_t *one = &s.per_gpu_stats[0];
  EXPECT(s.num_gpus >= 1 && one->n_total_reads == 1 && one->n_posix_reads == 1 && one->n_p2p_reads == 0 && one->n_nvfs_reads == 0);
  EXPECT(one->n_unaligned_reads == 1 && one->read_bytes == 5000 && one->n_mmap_ok == 1 && one->n_mmap_free == 1);
  IS(CU_FILE_SUCCESS, cuFileStatsStop());
  IS(CU_FILE_SUCCESS, cuFileSetStatsLevel(0));
  cuFileHandleDeregister(fh);
  close(fd);
  IS(CU_FILE_SUCCESS, cuFileDriverClose());
}

// ---- in the order of a stream

// Holds the stream until it is opened.
typedef struct gate {
  atomic_int open;
  void (*then)(void);
} gate;

static void wait_at(void *data) {
  gate *g = data;
  while (!atomic_load(&g->open)) {
    usleep(1000);
  }
  if (g->then != NULL) {
    g->then();
  }
}

static size_t size;
static off_t file_offset, base_offset;
static ssize_t result;

static void other_arguments(void) {
  size = 5000;
  file_offset = 4097;
  base_offset = 3;
}

static void arguments_are(size_t bytes, off_t offset, off_t at) {
  size = bytes;
  file_offset = offset;
  base_offset = at;
  result = -77;
}

static void sync_stream(void) {
  TRUE_OF_CUDA(cuda.cuStreamSynchronize(stream));
}

static void read_in_stream(CUfileHandle_t fh, void *base, size_t bytes, off_t offset, off_t at) {
  arguments_are(bytes, offset, at);
  IS(CU_FILE_SUCCESS, cuFileReadAsync(fh, base, &size, &file_offset, &base_offset, &result, stream));
  sync_stream();
}

static void streams(void) {
  static gate g;
  int fd = open_file(O_RDWR);
  CUfileHandle_t fh = register_file(fd);
  static const size_t sizes[] = {1, 4096, 5000, MIB, 4 * MIB, 4 * MIB + 1, 10 * MIB - 8192};
  for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
    for (off_t at = 0; at < 8192; at += 4095) {
      clear_gpu((size_t)at + sizes[s] + 1);
      read_in_stream(fh, at_gpu(0), sizes[s], 777, at);
      EXPECT(result == (ssize_t)sizes[s]);
      look_at_gpu((size_t)at + sizes[s] + 1);
      EXPECT(memcmp(memory + at, content + 777, sizes[s]) == 0);
      EXPECT(memory[at + (off_t)sizes[s]] == 0);
    }
  }
  // What is behind the end of the file stays.
  clear_gpu(BYTES);
  read_in_stream(fh, at_gpu(0), 9 * MIB, BYTES - 5 * MIB - 3, 0);
  EXPECT(result == 5 * MIB + 3);
  look_at_gpu(BYTES);
  EXPECT(memcmp(memory, content + BYTES - 5 * MIB - 3, 5 * MIB + 3) == 0 && memory[5 * MIB + 3] == 0);
  read_in_stream(fh, at_gpu(0), 10, BYTES, 0);
  EXPECT(result == 0);
  read_in_stream(fh, at_gpu(0), 0, 0, 0);
  EXPECT(result == 0);
  read_in_stream(fh, at_gpu(0), 10, -1, 0);
  EXPECT(result == -EINVAL);
  read_in_stream(fh, at_gpu(0), 10, 0, 100 * MIB);
  EXPECT(result == -CU_FILE_CUDA_POINTER_RANGE_ERROR);
  // Sizes that no memory has put no more into the stream than the memory takes.
  for (size_t most = SIZE_MAX; most > 100 * MIB; most >>= 3) {
    read_in_stream(fh, at_gpu(0), most, 0, 0);
    EXPECT(result == (most > SSIZE_MAX ? -CU_FILE_INVALID_VALUE : -CU_FILE_CUDA_POINTER_RANGE_ERROR));
  }
  memset(memory, 0, MIB);
  read_in_stream(fh, memory, 5000, 3, 5);
  EXPECT(result == 5000 && memcmp(memory + 5, content + 3, 5000) == 0);
  // The call returns before the stream has come there, and the arguments are read then.
  clear_gpu(BYTES);
  g = (gate){.then = other_arguments};
  TRUE_OF_CUDA(cuda.cuLaunchHostFunc(stream, wait_at, &g));
  arguments_are(65536, 0, 0);
  IS(CU_FILE_SUCCESS, cuFileReadAsync(fh, at_gpu(0), &size, &file_offset, &base_offset, &result, stream));
  EXPECT(result == -77);
  atomic_store(&g.open, 1);
  sync_stream();
  EXPECT(result == 5000);
  look_at_gpu(8192);
  EXPECT(memory[2] == 0 && memcmp(memory + 3, content + 4097, 5000) == 0 && memory[5003] == 0);
  cuFileHandleDeregister(fh);
  close(fd);
}

static void streams_with_fixed_arguments(void) {
  static gate g;
  int fd = open_file(O_RDWR);
  CUfileHandle_t fh = register_file(fd);
  clear_gpu(BYTES);
  IS(CU_FILE_INVALID_VALUE, cuFileStreamDeregister(stream));
  IS(CU_FILE_SUCCESS, cuFileStreamRegister(stream, 15));
  IS(CU_FILE_INVALID_VALUE, cuFileStreamRegister(stream, 15));
  g = (gate){.then = other_arguments};
  TRUE_OF_CUDA(cuda.cuLaunchHostFunc(stream, wait_at, &g));
  arguments_are(4096, 8192, 0);
  IS(CU_FILE_SUCCESS, cuFileReadAsync(fh, at_gpu(0), &size, &file_offset, &base_offset, &result, stream));
  atomic_store(&g.open, 1);
  sync_stream();
  EXPECT(result == 4096);
  look_at_gpu(8192);
  EXPECT(memcmp(memory, content + 8192, 4096) == 0 && memory[4096] == 0);
  IS(CU_FILE_SUCCESS, cuFileStreamDeregister(stream));
  IS(CU_FILE_INVALID_VALUE, cuFileStreamDeregister(stream));
  arguments_are(1, 0, 0);
  IS(CU_FILE_INVALID_VALUE, cuFileReadAsync(NULL, at_gpu(0), &size, &file_offset, &base_offset, &result, stream));
  IS(CU_FILE_INVALID_VALUE, cuFileReadAsync(fh, NULL, &size, &file_offset, &base_offset, &result, stream));
  IS(CU_FILE_INVALID_VALUE, cuFileReadAsync(fh, at_gpu(0), NULL, &file_offset, &base_offset, &result, stream));
  IS(CU_FILE_INVALID_VALUE, cuFileReadAsync(fh, at_gpu(0), &size, NULL, &base_offset, &result, stream));
  IS(CU_FILE_INVALID_VALUE, cuFileReadAsync(fh, at_gpu(0), &size, &file_offset, NULL, &result, stream));
  IS(CU_FILE_INVALID_VALUE, cuFileReadAsync(fh, at_gpu(0), &size, &file_offset, &base_offset, NULL, stream));
  cuFileHandleDeregister(fh);
  close(fd);
}

// What a thread has in its own stream, which has the same name for all threads.
static void *reads_in_its_own_stream(void *number) {
  const CUstream own = (CUstream)(uintptr_t)2;
  const size_t index = (size_t)(uintptr_t)number;
  size_t bytes = 2 * MIB;
  off_t offset = (off_t)(index * MIB), at = (off_t)(index * bytes);
  unsigned char *mine = malloc(bytes);
  int fd = open_file(O_RDONLY);
  CUfileHandle_t fh = register_file(fd);
  TRUE_OF_CUDA(cuda.cuCtxSetCurrent(context));
  for (int turn = 0; turn < 20; turn++) {
    ssize_t got = -77;
    IS(CU_FILE_SUCCESS, cuFileReadAsync(fh, at_gpu(0), &bytes, &offset, &at, &got, own));
    TRUE_OF_CUDA(cuda.cuMemcpyDtoHAsync_v2(mine, gpu + (device_address)at, bytes, own));
    TRUE_OF_CUDA(cuda.cuStreamSynchronize(own));
    EXPECT(got == (ssize_t)bytes && memcmp(mine, content + offset, bytes) == 0);
  }
  cuFileHandleDeregister(fh);
  close(fd);
  free(mine);
  return NULL;
}

static void streams_of_threads(void) {
  pthread_t threads[4];
  for (uintptr_t i = 0; i < 4; i++) {
    EXPECT(pthread_create(&threads[i], NULL, reads_in_its_own_stream, (void *)i) == 0);
  }
  for (int i = 0; i < 4; i++) {
    pthread_join(threads[i], NULL);
  }
}

// Memory that the stream's kernels would fail on is refused before they run; a transfer in no stream goes there by its context.
static void memory_out_of_reach(void) {
  int fd = open_file(O_RDWR);
  CUfileHandle_t fh = register_file(fd);
  fake.pretend(0, 0, 1);
  arguments_are(4096, 0, 0);
  IS(CU_FILE_CUDA_CONTEXT_MISMATCH, cuFileReadAsync(fh, at_gpu(0), &size, &file_offset, &base_offset, &result, stream));
  IS(CU_FILE_CUDA_CONTEXT_MISMATCH, cuFileWriteAsync(fh, at_gpu(0), &size, &file_offset, &base_offset, &result, stream));
  IS(CU_FILE_SUCCESS, cuFileReadAsync(fh, memory, &size, &file_offset, &base_offset, &result, stream));
  sync_stream();
  EXPECT(result == 4096);
  fake.pretend(0, 0, 0);
  cuFileHandleDeregister(fh);
  close(fd);
}

// Somebody captures a stream in CUDA's global mode, which keeps all threads from calls that the library makes.
static void captures_elsewhere(void) {
  IS(CU_FILE_SUCCESS, cuFileDriverClose());
  int fd = open_file(O_RDWR), mode = 1;
  CUfileHandle_t fh = register_file(fd);
  fake.capture_elsewhere(1);
  TRUE_OF_CUDA(cuda.cuThreadExchangeStreamCaptureMode(&mode));
  GIVES(9 * MIB, cuFileRead(fh, at_gpu(0), 9 * MIB, 0, 0));
  GIVES(4096, cuFileWrite(fh, at_gpu(0), 4096, 0, 0));
  read_in_stream(fh, at_gpu(0), 4096, 0, 0);
  EXPECT(result == 4096);
  mode = 0;
  TRUE_OF_CUDA(cuda.cuThreadExchangeStreamCaptureMode(&mode));
  EXPECT(mode == 1); // is as it was
  fake.capture_elsewhere(0);
  cuFileHandleDeregister(fh);
  close(fd);
}

static void read_small_batch(CUfileHandle_t fh) {
  CUfileBatchHandle_t id;
  CUfileIOParams_t params[] = {request(fh, at_gpu(0), 4096, 0, 4096, 0), request(fh, at_gpu(0), 0, 4096, 4096, 1)};
  CUfileIOEvents_t events[2];
  unsigned nr = 2;
  IS(CU_FILE_SUCCESS, cuFileBatchIOSetUp(&id, 2));
  IS(CU_FILE_SUCCESS, cuFileBatchIOSubmit(id, 2, params, 0));
  IS(CU_FILE_SUCCESS, cuFileBatchIOGetStatus(id, 2, &nr, events, NULL));
  EXPECT(nr == 2 && events[0].ret == 4096 && events[1].ret == 4096);
  cuFileBatchIODestroy(id);
  look_at_gpu(8192);
  EXPECT(memcmp(memory, content + 4096, 4096) == 0 && memcmp(memory + 4096, content, 4096) == 0);
}

// Kernels go when the driver closes, and the next one has its own: the contexts may be others then.
static void kernels_of_each_driver(void) {
  IS(CU_FILE_SUCCESS, cuFileDriverClose());
  const int loaded = fake.calls("cuModuleLoadDataEx");
  EXPECT(fake.calls("cuModuleUnload") == loaded);
  int fd = open_file(O_RDWR);
  CUfileHandle_t fh = register_file(fd);
  read_in_stream(fh, at_gpu(0), 4096, 0, 0);
  EXPECT(result == 4096 && fake.calls("cuModuleLoadDataEx") == loaded + 1);
  // Streams try again what has failed for want of memory; batches do without meanwhile.
  IS(CU_FILE_SUCCESS, cuFileDriverClose());
  fh = register_file(fd);
  fake.fail("cuModuleLoadDataEx", loaded + 2, 2);
  IS(CU_FILE_CUDA_DRIVER_ERROR, cuFileStreamRegister(stream, 0));
  read_small_batch(fh);
  EXPECT(fake.calls("cuModuleLoadDataEx") == loaded + 2);
  read_in_stream(fh, at_gpu(0), 4096, 0, 0);
  EXPECT(result == 4096 && fake.calls("cuModuleLoadDataEx") == loaded + 3);
  cuFileHandleDeregister(fh);
  close(fd);
}

// A write takes what the work before it left, and a read behind it gets that. The handle may go meanwhile.
static void writes_in_streams(void) {
  static gate g;
  ssize_t written = -77;
  size_t bytes = 9 * MIB + 5;
  off_t offset = 4097, at = 3, zero = 0;
  int fd = open_file(O_RDWR);
  CUfileHandle_t fh = register_file(fd);
  for (size_t i = 0; i < bytes; i++) {
    content[4097 + i] = (unsigned char)(i * 29);
  }
  IS(CU_FILE_SUCCESS, cuFileStreamRegister(stream, 0));
  g = (gate){.then = NULL};
  fill_gpu(content + 4094, bytes + 3);
  TRUE_OF_CUDA(cuda.cuLaunchHostFunc(stream, wait_at, &g));
  IS(CU_FILE_SUCCESS, cuFileWriteAsync(fh, at_gpu(0), &bytes, &offset, &at, &written, stream));
  arguments_are(BYTES, 0, 0);
  IS(CU_FILE_SUCCESS, cuFileReadAsync(fh, at_gpu(0), &size, &file_offset, &zero, &result, stream));
  cuFileHandleDeregister(fh);
  EXPECT(written == -77);
  device_address other;
  atomic_store(&g.open, 1);
  // Taking memory waits for the streams, which must not wait for calls of CUDA then.
  TRUE_OF_CUDA(cuda.cuMemAlloc_v2(&other, 4096));
  TRUE_OF_CUDA(cuda.cuMemFree_v2(other));
  sync_stream();
  EXPECT(written == (ssize_t)bytes && result == (ssize_t)BYTES);
  IS(CU_FILE_SUCCESS, cuFileStreamDeregister(stream));
  look_at_gpu(BYTES);
  EXPECT(memcmp(memory, content, BYTES) == 0);
  close(fd);
  renew_file();
}

// What one of many threads has: a handle, and memory of the host or the GPU.
typedef struct actor {
  unsigned random;
  int fd;
  CUfileHandle_t fh;
  unsigned char *host;
  void *base; // host, or memory of the GPU
  CUstream stream;
} actor;

enum { ACTOR_BYTES = 1 << 20 };

static long seconds; // that everything_at_once lasts; 0: as short as it can be
static time_t until;

static long resident_kib(void) {
  long pages = 0;
  FILE *file = fopen("/proc/self/statm", "r");
  EXPECT(file != NULL && fscanf(file, "%*d %ld", &pages) == 1);
  fclose(file);
  return pages * (sysconf(_SC_PAGESIZE) / 1024);
}

static unsigned next(actor *a, unsigned below) {
  a->random = a->random * 1664525 + 1013904223;
  return (a->random >> 8) % below;
}

static void expect_bytes(actor *a, off_t offset, off_t at, size_t bytes) {
  if (a->base != a->host) {
    EXPECT(cuda.cuMemcpyDtoHAsync_v2(a->host + at, (device_address)(uintptr_t)a->base + (device_address)at, bytes, a->stream) == 0);
    EXPECT(cuda.cuStreamSynchronize(a->stream) == 0);
  }
  EXPECT(memcmp(a->host + at, content + offset, bytes) == 0);
}

static void some_batch(actor *a) {
  CUfileBatchHandle_t id;
  CUfileIOParams_t params[16];
  CUfileIOEvents_t events[16];
  unsigned nr = 16;
  const off_t offset = next(a, BYTES - ACTOR_BYTES);
  IS(CU_FILE_SUCCESS, cuFileBatchIOSetUp(&id, 16));
  for (int i = 0; i < 16; i++) {
    params[i] = request(a->fh, a->base, offset + i * 60000, i * 60000, 60000, i);
  }
  IS(CU_FILE_SUCCESS, cuFileBatchIOSubmit(id, 16, params, 0));
  if (next(a, 3) == 0) {
    IS(CU_FILE_SUCCESS, cuFileBatchIOCancel(id));
  }
  if (next(a, 3) > 0) {
    IS(CU_FILE_SUCCESS, cuFileBatchIOGetStatus(id, 16, &nr, events, NULL));
    for (unsigned i = 0; i < nr; i++) {
      if (events[i].status == CUFILE_COMPLETE) {
        const long cookie = (long)events[i].cookie;
        expect_bytes(a, offset + cookie * 60000, cookie * 60000, 60000);
      }
    }
  }
  cuFileBatchIODestroy(id);
}

static void some_stream(actor *a) {
  size_t bytes = next(a, ACTOR_BYTES) + 1;
  off_t offset = next(a, BYTES - ACTOR_BYTES), at = 0;
  ssize_t got = -77;
  IS(CU_FILE_SUCCESS, cuFileReadAsync(a->fh, a->base, &bytes, &offset, &at, &got, a->stream));
  EXPECT(cuda.cuStreamSynchronize(a->stream) == 0);
  EXPECT(got == (ssize_t)bytes);
  expect_bytes(a, offset, 0, bytes);
}

static void *acts(void *argument) {
  actor *a = argument;
  if (context != NULL) {
    cuda.cuCtxSetCurrent(context);
  }
  for (int i = 0; i < 60 || time(NULL) < until; i++) {
    const size_t bytes = next(a, 2) ? next(a, 8192) + 1 : next(a, ACTOR_BYTES) + 1;
    const off_t offset = next(a, BYTES - ACTOR_BYTES);
    switch (next(a, 8)) {
      case 0:
        cuFileHandleDeregister(a->fh);
        a->fh = register_file(a->fd);
        break;
      case 1:
        IS(CU_FILE_SUCCESS, cuFileBufRegister(a->base, ACTOR_BYTES, 0));
        GIVES(bytes, cuFileRead(a->fh, a->base, bytes, offset, 0));
        IS(CU_FILE_SUCCESS, cuFileBufDeregister(a->base));
        break;
      case 2: some_batch(a); break;
      case 3:
        IS(CU_FILE_SUCCESS, cuFileDriverOpen());
        IS(CU_FILE_SUCCESS, cuFileDriverClose());
        break;
      case 4:
        if (a->base != a->host) {
          some_stream(a);
        }
        break;
      case 5: GIVES(bytes, cuFileWrite(a->fh, content + offset, bytes, offset, 0)); break;
      default:
        GIVES(bytes, cuFileRead(a->fh, a->base, bytes, offset, 0));
        expect_bytes(a, offset, 0, bytes);
        break;
    }
  }
  return NULL;
}

static void everything_at_once(void) {
  enum { THREADS = 24 };
  static actor actors[THREADS];
  pthread_t threads[THREADS];
  IS(CU_FILE_SUCCESS, cuFileDriverOpen());
  for (unsigned i = 0; i < THREADS; i++) {
    actor *a = &actors[i];
    *a = (actor){.random = i, .fd = open_file(O_RDWR | (i % 3 == 0 ? O_DIRECT : 0)), .host = aligned_alloc(4096, ACTOR_BYTES)};
    a->fh = register_file(a->fd);
    a->base = a->host;
    if (context != NULL && i % 2 == 0) {
      device_address mine = 0;
      EXPECT(cuda.cuMemAlloc_v2(&mine, ACTOR_BYTES) == 0 && cuda.cuStreamCreateWithPriority(&a->stream, 1, 0) == 0);
      a->base = (void *)(uintptr_t)mine;
    }
  }
  until = time(NULL) + seconds;
  for (int i = 0; i < THREADS; i++) {
    EXPECT(pthread_create(&threads[i], NULL, acts, &actors[i]) == 0);
  }
  // Threads have their stacks and lanes by then.
  sleep((unsigned)(seconds / 3));
  const long before = resident_kib();
  for (int i = 0; i < THREADS; i++) {
    pthread_join(threads[i], NULL);
  }
  if (seconds > 0) {
    printf("%ld KiB resident after a third of %ld s, %ld at the end\n", before, seconds, resident_kib());
    EXPECT(resident_kib() < before + 8 * 1024);
  }
  IS(CU_FILE_SUCCESS, cuFileDriverClose());
  for (int i = 0; i < THREADS; i++) {
    close(actors[i].fd);
    if (actors[i].base != actors[i].host) {
      EXPECT(cuda.cuMemFree_v2((device_address)(uintptr_t)actors[i].base) == 0 && cuda.cuStreamDestroy_v2(actors[i].stream) == 0);
    }
    free(actors[i].host);
  }
}

// ---- files that are read again and again

#define LONG_BYTES (40 * MIB + 777) // of two windows

static char long_path[4200], windows_log[4200];
static unsigned char change; // what the content of the long file differs by from byte_at

static void write_long_file(void) {
  static unsigned char piece[MIB];
  int fd = open(long_path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  for (size_t at = 0; at < LONG_BYTES; at += MIB) {
    const size_t bytes = LONG_BYTES - at < MIB ? LONG_BYTES - at : MIB;
    for (size_t i = 0; i < bytes; i++) {
      piece[i] = byte_at(at + i) ^ change;
    }
    EXPECT(pwrite(fd, piece, bytes, (off_t)at) == (ssize_t)bytes);
  }
  close(fd);
}

static bool is_long(const unsigned char *is, size_t at, size_t bytes) {
  size_t i = 0;
  while (i < bytes && is[i] == (byte_at(at + i) ^ change)) {
    i++;
  }
  return i == bytes;
}

// How often the log has a text.
static int logged(const char *text) {
  char line[1024];
  int count = 0;
  FILE *log = fopen(windows_log, "re");
  while (log != NULL && fgets(line, sizeof line, log) != NULL) {
    count += strstr(line, text) != NULL;
  }
  if (log != NULL) {
    fclose(log);
  }
  return count;
}

// How often the long file is mapped.
static int mapped(void) {
  char line[4400];
  int count = 0;
  FILE *maps = fopen("/proc/self/maps", "re");
  while (fgets(line, sizeof line, maps) != NULL) {
    count += strstr(line, long_path) != NULL;
  }
  fclose(maps);
  return count;
}

static int pins(void) {
  return logged("are pinned in the page cache");
}

static void read_long(CUfileHandle_t fh, size_t at, size_t bytes, off_t to) {
  GIVES(bytes, cuFileRead(fh, at_gpu(0), bytes, (off_t)at, to));
  look_at_gpu((size_t)to + bytes);
  EXPECT(is_long(memory + to, at, bytes));
}

// Reads it as a whole until so many windows were pinned in all, or for some seconds.
static void read_until_pinned(CUfileHandle_t fh, int count, int most_seconds) {
  const time_t end = time(NULL) + most_seconds;
  do {
    for (size_t at = 0; at < LONG_BYTES; at += MIB) {
      read_long(fh, at, LONG_BYTES - at < MIB ? LONG_BYTES - at : MIB, 0);
    }
    usleep(10000); // a worker pins
  } while (pins() < count && time(NULL) < end);
}

static void read_long_anyhow(CUfileHandle_t fh) {
  enum { REQUESTS = 60 };
  static const size_t sizes[] = {1, 4096, 5000, MIB, 3 * MIB + 5, 8 * MIB}, places[] = {0, 4097, 32 * MIB - 4096, 32 * MIB, LONG_BYTES - 9 * MIB};
  for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
    for (size_t p = 0; p < sizeof places / sizeof *places; p++) {
      read_long(fh, places[p], sizes[s], p % 2 == 0 ? 0 : 4095);
      clear_gpu(sizes[s] + 16);
      for (off_t to = 0; to < 16; to += 3) {
        read_in_stream(fh, at_gpu(0), sizes[s], (off_t)places[p] + to % 2, to);
        EXPECT(result == (ssize_t)sizes[s]);
        look_at_gpu((size_t)to + sizes[s]);
        EXPECT(is_long(memory + to, places[p] + (size_t)to % 2, sizes[s]));
      }
    }
  }
  GIVES(777, cuFileRead(fh, at_gpu(0), MIB, LONG_BYTES - 777, 0));
  GIVES(0, cuFileRead(fh, at_gpu(0), MIB, LONG_BYTES, 0));
  CUfileBatchHandle_t id;
  CUfileIOParams_t params[REQUESTS];
  CUfileIOEvents_t events[REQUESTS];
  unsigned nr = REQUESTS;
  size_t from[REQUESTS];
  clear_gpu(REQUESTS * 8192);
  for (int i = 0; i < REQUESTS; i++) {
    from[i] = i == 30 ? 32 * MIB - 100 : (size_t)i * 600000 + (size_t)i % 3;
    params[i] = request(fh, at_gpu(0), (off_t)from[i], i * 8192, 4096 + (size_t)i, i);
  }
  IS(CU_FILE_SUCCESS, cuFileBatchIOSetUp(&id, REQUESTS));
  IS(CU_FILE_SUCCESS, cuFileBatchIOSubmit(id, REQUESTS, params, 0));
  IS(CU_FILE_SUCCESS, cuFileBatchIOGetStatus(id, REQUESTS, &nr, events, NULL));
  EXPECT(nr == REQUESTS);
  for (unsigned i = 0; i < nr; i++) {
    EXPECT(events[i].status == CUFILE_COMPLETE && events[i].ret == 4096 + (size_t)(uintptr_t)events[i].cookie);
  }
  look_at_gpu(REQUESTS * 8192);
  for (size_t i = 0; i < REQUESTS; i++) {
    EXPECT(is_long(memory + i * 8192, from[i], 4096 + i) && memory[i * 8192 + 4096 + i] == 0);
  }
  cuFileBatchIODestroy(id);
}

// What windows had when a stream was asked for it is read as a whole if they do not have it when the stream comes there.
static void change_before_stream_reads(CUfileHandle_t fh, bool in_stream) {
  static gate g;
  size_t bytes = 4096;
  off_t zero = 0;
  ssize_t written = 4096;
  read_long(fh, 0, 4096, 0);
  g = (gate){.then = NULL};
  TRUE_OF_CUDA(cuda.cuLaunchHostFunc(stream, wait_at, &g));
  if (in_stream) {
    IS(CU_FILE_SUCCESS, cuFileWriteAsync(fh, at_gpu(0), &bytes, &zero, &zero, &written, stream));
  }
  arguments_are(BYTES - 1, 3 * MIB, 0);
  IS(CU_FILE_SUCCESS, cuFileReadAsync(fh, at_gpu(0), &size, &file_offset, &zero, &result, stream));
  if (!in_stream) {
    change ^= 0x77;
    write_long_file();
  }
  atomic_store(&g.open, 1);
  sync_stream();
  EXPECT(written == 4096);
  GIVES(BYTES - 1, result);
  look_at_gpu(BYTES - 1);
  EXPECT(is_long(memory, 3 * MIB, BYTES - 1));
}

// Requests that are too long for one kernel are copied by several threads, though windows have them.
static void long_requests_of_a_batch(CUfileHandle_t fh) {
  enum { REQUESTS = 4 };
  const char *copy = "cuMemcpyHtoDAsync_v2";
  CUfileBatchHandle_t id;
  CUfileIOParams_t params[REQUESTS];
  CUfileIOEvents_t events[REQUESTS];
  unsigned nr = REQUESTS;
  if (fake.block == NULL || sysconf(_SC_NPROCESSORS_ONLN) < 2) {
    return;
  }
  for (int i = 0; i < REQUESTS; i++) {
    params[i] = request(fh, at_gpu(0), i * MIB, i * MIB, MIB, i);
  }
  IS(CU_FILE_SUCCESS, cuFileBatchIOSetUp(&id, REQUESTS));
  fake.block(copy);
  const int before = fake.calls(copy);
  IS(CU_FILE_SUCCESS, cuFileBatchIOSubmit(id, REQUESTS, params, 0));
  for (int i = 0; i < 500 && fake.calls(copy) < before + 2; i++) {
    usleep(10000);
  }
  EXPECT(fake.calls(copy) >= before + 2);
  fake.block("");
  IS(CU_FILE_SUCCESS, cuFileBatchIOGetStatus(id, REQUESTS, &nr, events, NULL));
  EXPECT(nr == REQUESTS);
  look_at_gpu(REQUESTS * MIB);
  EXPECT(is_long(memory, 0, REQUESTS * MIB));
  cuFileBatchIODestroy(id);
}

static void *unblock_soon(void *unused) {
  usleep(200000);
  fake.block("");
  return unused;
}

// A stream that takes a transfer only in part: what its first step has seen of windows is let go, as the end of the caller shows.
static void stream_that_breaks(CUfileHandle_t fh) {
  pthread_t thread;
  if (fake.block == NULL) {
    return;
  }
  fake.fail("cuLaunchKernel", fake.calls("cuLaunchKernel") + 1, 700);
  fake.block("cuLaunchKernel");
  EXPECT(pthread_create(&thread, NULL, unblock_soon, NULL) == 0);
  arguments_are(9 * MIB, 1, 0); // off alignment, so it is read
  EXPECT(cuFileReadAsync(fh, at_gpu(0), &size, &file_offset, &base_offset, &result, stream).err == CU_FILE_CUDA_DRIVER_ERROR);
  pthread_join(thread, NULL);
  sync_stream();
}

static atomic_bool readers_end;

static void *read_long_for_ever(void *fh) {
  device_address mine;
  unsigned char *back = malloc(MIB);
  uint32_t random = (uint32_t)(uintptr_t)&mine | 1;
  TRUE_OF_CUDA(cuda.cuCtxSetCurrent(context));
  TRUE_OF_CUDA(cuda.cuMemAlloc_v2(&mine, MIB));
  while (!atomic_load(&readers_end)) {
    random = random * 1664525 + 1013904223;
    const size_t at = random % (LONG_BYTES - MIB), bytes = 1 + random / 7 % MIB;
    GIVES(bytes, cuFileRead(fh, (void *)(uintptr_t)mine, bytes, (off_t)at, 0));
    TRUE_OF_CUDA(cuda.cuMemcpyDtoHAsync_v2(back, mine, bytes, stream));
    TRUE_OF_CUDA(cuda.cuStreamSynchronize(stream));
    EXPECT(is_long(back, at, bytes));
  }
  TRUE_OF_CUDA(cuda.cuMemFree_v2(mine));
  free(back);
  return NULL;
}

// Lets go of the windows while threads copy from them.
static void change_beside_readers(CUfileHandle_t fh, int fd) {
  enum { READERS = 4 };
  pthread_t threads[READERS];
  atomic_store(&readers_end, false);
  for (int i = 0; i < READERS; i++) {
    EXPECT(pthread_create(&threads[i], NULL, read_long_for_ever, fh) == 0);
  }
  usleep(200000);
  EXPECT(fchmod(fd, 0640) == 0);
  usleep(200000);
  atomic_store(&readers_end, true);
  for (int i = 0; i < READERS; i++) {
    pthread_join(threads[i], NULL);
  }
}

static CUfileHandle_t open_long_file(int *fd, const char *most) {
  setenv("GPUNVME_CUFILE_PIN", most, 1);
  IS(CU_FILE_SUCCESS, cuFileDriverOpen());
  *fd = open(long_path, O_RDWR | O_CLOEXEC);
  return register_file(*fd);
}

static bool nothing_is_pinned(void) {
  return fake.calls == NULL || fake.calls("cuMemHostRegister_v2") == fake.calls("cuMemHostUnregister");
}

// Nothing of a file that is not registered any more stays pinned, though streams that read it live on.
static void close_long_file(CUfileHandle_t fh, int fd) {
  cuFileHandleDeregister(fh);
  close(fd);
  for (int i = 0; i < 500 && !nothing_is_pinned(); i++) {
    usleep(10000); // by a worker
  }
  EXPECT(nothing_is_pinned());
  IS(CU_FILE_SUCCESS, cuFileDriverClose());
}

static void pinned_windows(void) {
  int fd;
  setenv("CUFILE_LOGFILE_PATH", windows_log, 1);
  setenv("CUFILE_LOGGING_LEVEL", "DEBUG", 1);
  CUfileHandle_t fh = open_long_file(&fd, "auto");
  read_until_pinned(fh, 2, 0);
  EXPECT(mapped() == 0); // what is read once costs no mapping, of which a process may have no more than 65530
  read_until_pinned(fh, 2, 10);
  EXPECT(pins() == 2 && mapped() == 1);
  read_long_anyhow(fh);
  // Places that no file and no memory has are refused as ever.
  static const off_t far[] = {INT64_MIN, -1, INT64_MAX - 10, INT64_MAX};
  for (size_t i = 0; i < sizeof far / sizeof *far; i++) {
    read_in_stream(fh, at_gpu(0), 10, far[i], 0);
    EXPECT(i == 2 ? result == 0 : result == -EINVAL);
    GIVES(i == 2 ? 0 : -1, cuFileRead(fh, at_gpu(0), 10, far[i], 0));
    read_in_stream(fh, at_gpu(0), 10, 0, far[i]);
    EXPECT(result == (i < 2 ? -CU_FILE_INVALID_VALUE : -CU_FILE_CUDA_POINTER_RANGE_ERROR));
  }
  // What is written is read, and so is what takes the place of the whole content, at once.
  const unsigned char other = (unsigned char)(byte_at(5000) ^ 0xFF);
  EXPECT(pwrite(fd, &other, 1, 5000) == 1);
  GIVES(1, cuFileRead(fh, at_gpu(0), 1, 5000, 0));
  look_at_gpu(1);
  EXPECT(memory[0] == other);
  change = 0x5A;
  write_long_file();
#ifndef SETTLED_SECONDS
  // A file that was changed just now is read.
  read_until_pinned(fh, 3, 0);
  EXPECT(pins() == 2);
#endif
  read_long_anyhow(fh);
  read_until_pinned(fh, 4, 10);
  EXPECT(pins() == 4);
  change = 0xA5;
  write_long_file();
  read_long_anyhow(fh);
  read_until_pinned(fh, 6, 10);
  EXPECT(pins() == 6);
  read_long_anyhow(fh);
  long_requests_of_a_batch(fh);
  stream_that_breaks(fh);
  change_before_stream_reads(fh, true);
  read_until_pinned(fh, 8, 10);
  EXPECT(pins() == 8);
  change_before_stream_reads(fh, false);
  change_beside_readers(fh, fd);
  close_long_file(fh, fd);
}

static void *close_driver(void *unused) {
  IS(CU_FILE_SUCCESS, cuFileDriverClose());
  return unused;
}

// A function of a stream has the last of a file's windows while the workers end, one of which waits for the stream. The function may call
// nothing of CUDA, so the close does.
static void closed_beside_a_stream(void) {
  static gate g;
  pthread_t thread;
  int fd, other;
  const int before = pins();
  CUfileHandle_t fh = open_long_file(&fd, "auto"), busy;
  read_until_pinned(fh, before + 2, 10);
  other = open(long_path, O_RDWR | O_CLOEXEC);
  busy = register_file(other);
  read_until_pinned(busy, before + 4, 10);
  read_in_stream(fh, at_gpu(0), MIB, 0, 0); // takes the memory of the stream
  g = (gate){.then = NULL};
  TRUE_OF_CUDA(cuda.cuLaunchHostFunc(stream, wait_at, &g));
  arguments_are(MIB, 0, 0);
  IS(CU_FILE_SUCCESS, cuFileReadAsync(fh, at_gpu(0), &size, &file_offset, &base_offset, &result, stream));
  cuFileHandleDeregister(fh);
  cuFileHandleDeregister(busy);
  usleep(100000); // a worker lets its windows go
  EXPECT(pthread_create(&thread, NULL, close_driver, NULL) == 0);
  usleep(100000); // and is waited for
  atomic_store(&g.open, 1);
  pthread_join(thread, NULL);
  sync_stream();
  EXPECT(result == MIB && nothing_is_pinned() && mapped() == 0);
  close(fd);
  close(other);
}

static void limited_windows(void) {
  const int before = pins(); // also what readers beside a change pinned again
  int fd;
  CUfileHandle_t fh = open_long_file(&fd, "33MiB");
  usleep(100000);
  read_until_pinned(fh, before + 1, 10);
  read_until_pinned(fh, before + 2, 0);
  EXPECT(pins() == before + 1);
  read_long_anyhow(fh);
  close_long_file(fh, fd);
  fh = open_long_file(&fd, "0");
  read_until_pinned(fh, before + 2, 0);
  EXPECT(pins() == before + 1);
  close_long_file(fh, fd);
  EXPECT(logged("GPUNVME_CUFILE_PIN is not auto") == 0);
  fh = open_long_file(&fd, ""); // the usual
  read_until_pinned(fh, before + 2, 0);
  EXPECT(pins() == before + 1);
  close_long_file(fh, fd);
  close_long_file(open_long_file(&fd, "-1"), fd);
  EXPECT(logged("GPUNVME_CUFILE_PIN is not auto") == 1);
  unsetenv("GPUNVME_CUFILE_PIN");
  unsetenv("CUFILE_LOGFILE_PATH");
  unsetenv("CUFILE_LOGGING_LEVEL");
}

static bool has_windows(void) {
  struct statfs system;
  return statfs(long_path, &system) == 0 && (system.f_type == 0xEF53 || system.f_type == 0x58465342);
}

static void device_groups(void) {
  snprintf(long_path, sizeof long_path, "%s.long", path);
  snprintf(windows_log, sizeof windows_log, "%s.log", path);
  write_long_file();
  RUN(device_transfers);
  RUN(device_transfers_past_the_page_cache);
  RUN(device_buffers);
  RUN(device_batches);
  RUN(batches_of_two_kinds);
  RUN(streams);
  RUN(streams_with_fixed_arguments);
  RUN(streams_of_threads);
  if (fake.pretend != NULL) {
    RUN(memory_out_of_reach);
    RUN(captures_elsewhere);
    RUN(kernels_of_each_driver);
  }
  RUN(writes_in_streams);
  IS(CU_FILE_SUCCESS, cuFileDriverClose());
  RUN(device_statistics);
  if (has_windows()) {
    RUN(pinned_windows);
    RUN(closed_beside_a_stream);
    RUN(limited_windows);
  } else {
    puts("SKIP pinned_windows: files are neither on ext4 nor on XFS");
  }
  RUN(everything_at_once);
}

int main(int count, char **arguments) {
  if (count != 2 && count != 3) {
    fprintf(stderr, "usage: %s FOLDER [SECONDS]\n", arguments[0]);
    return 2;
  }
  seconds = count == 3 ? atol(arguments[2]) : 0;
  setenv("CUFILE_ENV_PATH_JSON", "/nowhere.json", 1); // not that of this machine
  snprintf(path, sizeof path, "%s/file", arguments[1]);
  content = aligned_alloc(4096, BYTES + 2 * MIB - BYTES % MIB);
  memory = aligned_alloc(4096, BYTES + 2 * MIB - BYTES % MIB);
  renew_file();
  RUN(driver);
  RUN(regions_of_gpus);
  RUN(memory_of_a_group);
  RUN(parameters);
  RUN(file_and_environment);
  RUN(odd_files);
  RUN(odd_logs);
  RUN(setters_while_it_opens);
  setenv("CUFILE_ENV_PATH_JSON", "/nowhere.json", 1);
  RUN(handles);
  RUN(buffers);
  RUN(through_the_page_cache);
  RUN(past_the_page_cache);
  RUN(synchronous_writes);
  RUN(batches);
  RUN(cancelled);
  RUN(statistics);
  RUN(forks);
  RUN(without_compatibility);
  RUN(many_threads);
  RUN(closes_beside_reads);
  RUN(everything_at_once);
  if (getenv("GPUNVME_LIBCUDA") != NULL) {
    have_cuda(getenv("GPUNVME_LIBCUDA"));
    device_groups();
  }
  return check_failed_tests > 0;
}
