// Runs the groups, each in a process of its own, and tells what they said.
#include "suite.h"

#include <dirent.h>
#include <dlfcn.h>
#include <ftw.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/prctl.h>

struct cufile_table cufile;
const char *cufile_library = "libcufile.so.0";
enum memory memory = HOST;

static const struct group *const topics[] = {abi_groups,    driver_groups, parameter_groups, config_groups, handle_groups, buffer_groups,
                                             io_groups,     stream_groups, batch_groups,     stats_groups,  process_groups};

// ---- In the process of a group: a record for each check, on a pipe.

static int reports = -1;
static const struct group *running;
static pthread_mutex_t reporting = PTHREAD_MUTEX_INITIALIZER;

const char *text(const char *format, ...) {
  static _Thread_local char texts[128][512];
  static _Thread_local unsigned next;
  char *to = texts[next++ % 128];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(to, sizeof texts[0], format, arguments);
  va_end(arguments);
  return to;
}

// One line: RESULT, ID, EXPECTED, OBSERVED, with a tab between.
static void report(const char *result, const char *id, const char *expected, const char *observed) {
  char line[2048];
  static const char *const kinds[] = {"@host", "@device"};
  int size = snprintf(line, sizeof line, "%s\t%s.%s%s\t%s\t%s\n", result, running->name, id,
                      running->flags & USES_MEMORY ? kinds[memory] : "", expected, observed);
  if (size >= (int)sizeof line) {
    size = (int)sizeof line;
    line[size - 1] = '\n';
  }
  pthread_mutex_lock(&reporting);
  if (write(reports, line, (size_t)size) != size) {
    _exit(3);
  }
  pthread_mutex_unlock(&reporting);
}

void is_true(const char *id, bool ok, const char *expected, const char *observed) {
  report(ok ? "passed" : "failed", id, expected, observed);
}

void observe(const char *id, const char *observed) { report("observed", id, "", observed); }

void skip(const char *id, const char *why) { report("skipped", id, "", why); }

void give_up(const char *why) {
  report("skipped", "rest", "", why);
  _exit(0);
}

void is_number(const char *id, long long observed, long long expected) {
  is_true(id, observed == expected, text("%lld", expected), text("%lld", observed));
}

const char *code_name(int code) {
  switch (code) {
#define NAME(name)                                                                                                               \
  case name:                                                                                                                     \
    return #name;
    NAME(CU_FILE_SUCCESS)
    NAME(CU_FILE_DRIVER_NOT_INITIALIZED)
    NAME(CU_FILE_DRIVER_INVALID_PROPS)
    NAME(CU_FILE_DRIVER_UNSUPPORTED_LIMIT)
    NAME(CU_FILE_DRIVER_VERSION_MISMATCH)
    NAME(CU_FILE_DRIVER_VERSION_READ_ERROR)
    NAME(CU_FILE_DRIVER_CLOSING)
    NAME(CU_FILE_PLATFORM_NOT_SUPPORTED)
    NAME(CU_FILE_IO_NOT_SUPPORTED)
    NAME(CU_FILE_DEVICE_NOT_SUPPORTED)
    NAME(CU_FILE_NVFS_DRIVER_ERROR)
    NAME(CU_FILE_CUDA_DRIVER_ERROR)
    NAME(CU_FILE_CUDA_POINTER_INVALID)
    NAME(CU_FILE_CUDA_MEMORY_TYPE_INVALID)
    NAME(CU_FILE_CUDA_POINTER_RANGE_ERROR)
    NAME(CU_FILE_CUDA_CONTEXT_MISMATCH)
    NAME(CU_FILE_INVALID_MAPPING_SIZE)
    NAME(CU_FILE_INVALID_MAPPING_RANGE)
    NAME(CU_FILE_INVALID_FILE_TYPE)
    NAME(CU_FILE_INVALID_FILE_OPEN_FLAG)
    NAME(CU_FILE_DIO_NOT_SET)
    NAME(CU_FILE_INVALID_VALUE)
    NAME(CU_FILE_MEMORY_ALREADY_REGISTERED)
    NAME(CU_FILE_MEMORY_NOT_REGISTERED)
    NAME(CU_FILE_PERMISSION_DENIED)
    NAME(CU_FILE_DRIVER_ALREADY_OPEN)
    NAME(CU_FILE_HANDLE_NOT_REGISTERED)
    NAME(CU_FILE_HANDLE_ALREADY_REGISTERED)
    NAME(CU_FILE_DEVICE_NOT_FOUND)
    NAME(CU_FILE_INTERNAL_ERROR)
    NAME(CU_FILE_GETNEWFD_FAILED)
    NAME(CU_FILE_NVFS_SETUP_ERROR)
    NAME(CU_FILE_IO_DISABLED)
    NAME(CU_FILE_BATCH_SUBMIT_FAILED)
    NAME(CU_FILE_GPU_MEMORY_PINNING_FAILED)
    NAME(CU_FILE_BATCH_FULL)
    NAME(CU_FILE_ASYNC_NOT_SUPPORTED)
    NAME(CU_FILE_INTERNAL_BATCH_SETUP_ERROR)
    NAME(CU_FILE_INTERNAL_BATCH_SUBMIT_ERROR)
    NAME(CU_FILE_INTERNAL_BATCH_GETSTATUS_ERROR)
    NAME(CU_FILE_INTERNAL_BATCH_CANCEL_ERROR)
    NAME(CU_FILE_NOMEM_ERROR)
    NAME(CU_FILE_IO_ERROR)
    NAME(CU_FILE_INTERNAL_BUF_REGISTER_ERROR)
    NAME(CU_FILE_HASH_OPR_ERROR)
    NAME(CU_FILE_INVALID_CONTEXT_ERROR)
    NAME(CU_FILE_NVFS_INTERNAL_DRIVER_ERROR)
    NAME(CU_FILE_BATCH_NOCOMPAT_ERROR)
    NAME(CU_FILE_IO_MAX_ERROR)
#undef NAME
    default:
      return text("%d", code);
  }
}

const char *error_text(CUfileError_t error) {
  return error.err == CU_FILE_CUDA_DRIVER_ERROR ? text("%s (CUresult %d)", code_name(error.err), (int)error.cu_err) : code_name((int)error.err);
}

void is_error(const char *id, CUfileError_t observed, CUfileOpError expected) {
  is_true(id, observed.err == expected, code_name((int)expected), error_text(observed));
}

void is_one_of(const char *id, CUfileError_t observed, int count, const CUfileOpError *expected) {
  const char *all = "";
  bool ok = false;
  for (int i = 0; i < count; i++) {
    all = text("%s%s%s", all, i == 0 ? "" : " or ", code_name((int)expected[i]));
    ok |= observed.err == expected[i];
  }
  is_true(id, ok, all, error_text(observed));
}

static const char *errno_text(int error) {
  const char *name = error > CUFILEOP_BASE_ERR ? code_name(error) : strerrorname_np(error);
  return name == NULL ? text("%d", error) : name;
}

const char *transferred_text(struct transferred what) {
  if (what.value == -1) {
    return text("-1, errno %s", what.error == 0 ? "0" : errno_text(what.error));
  }
  if (what.value < 0) {
    return text("-%s", errno_text((int)-what.value));
  }
  return text("%zd", what.value);
}

void is_transferred(const char *id, struct transferred observed, ssize_t expected) {
  is_true(id, observed.value == expected, text("%zd", expected), transferred_text(observed));
}

void is_refused(const char *id, struct transferred observed) {
  is_true(id, observed.value < 0, "a negative number", transferred_text(observed));
}

void is_errno(const char *id, struct transferred observed, int error) {
  is_true(id, observed.value == -1 && observed.error == error, transferred_text((struct transferred){-1, error}), transferred_text(observed));
}

void observe_transferred(const char *id, struct transferred observed) { observe(id, transferred_text(observed)); }

double seconds_now(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

// ---- The library

const char *exported_name(const char *name) { return strcmp(name, "DriverClose") == 0 ? "cuFileDriverClose_v2" : text("cuFile%s", name); }

static void missing_symbol(void) {
  report("failed", "missing-symbol", "every symbol of the interface", "a call of one that the library does not export");
  _exit(0);
}

bool load_cufile(void) {
  void *library = dlopen(cufile_library, RTLD_NOW | RTLD_LOCAL);
  if (library == NULL) {
    report("failed", "loads", "dlopen opens the library", dlerror());
    return false;
  }
#define X(name)                                                                                                                  \
  *(void **)&cufile.name = dlsym(library, exported_name(#name));                                                                 \
  if (cufile.name == NULL) {                                                                                                     \
    *(void **)&cufile.name = (void *)missing_symbol;                                                                             \
  }
  CUFILE_FUNCTIONS(X)
#undef X
  return true;
}

// ---- Files

// Eight bytes of a file, none of them the zero of a hole.
static uint64_t pattern_word(uint32_t seed, size_t word) {
  uint64_t x = (word + 1) * 0x9E3779B97F4A7C15u + seed * 0xD1B54A32D192ED03u;
  x ^= x >> 29;
  x *= 0xBF58476D1CE4E5B9u;
  x ^= x >> 32;
  return x | 0x0101010101010101u;
}

uint8_t pattern_at(uint32_t seed, size_t position) { return (uint8_t)(pattern_word(seed, position / 8) >> (position % 8 * 8)); }

void pattern(void *to, uint32_t seed, size_t position, size_t size) {
  uint8_t *bytes = to;
  size_t i = 0;
  for (; i < size && (position + i) % 8 != 0; i++) {
    bytes[i] = pattern_at(seed, position + i);
  }
  for (; i + 8 <= size; i += 8) {
    uint64_t word = pattern_word(seed, (position + i) / 8);
    memcpy(bytes + i, &word, 8);
  }
  for (; i < size; i++) {
    bytes[i] = pattern_at(seed, position + i);
  }
}

static bool write_all(int fd, const void *from, size_t size) {
  for (size_t done = 0; done < size;) {
    ssize_t n = pwrite(fd, (const char *)from + done, size - done, (off_t)done);
    if (n <= 0) {
      return false;
    }
    done += (size_t)n;
  }
  return true;
}

int new_file(const char *name, int flags, uint32_t seed, size_t size) {
  int fd = open(name, O_RDWR | O_CREAT | O_TRUNC, 0600);
  void *bytes = malloc(size + 1);
  if (fd < 0 || bytes == NULL) {
    return -1;
  }
  pattern(bytes, seed, 0, size);
  bool written = write_all(fd, bytes, size);
  free(bytes);
  fsync(fd);
  close(fd);
  return written ? open(name, flags, 0600) : -1;
}

bool file_has(const char *name, uint32_t seed, size_t position, size_t size) {
  uint8_t *bytes = malloc(size + 1), *expected = malloc(size + 1);
  int fd = open(name, O_RDONLY);
  pattern(expected, seed, position, size);
  bool same = fd >= 0 && pread(fd, bytes, size, (off_t)position) == (ssize_t)size && memcmp(bytes, expected, size) == 0;
  close(fd);
  free(bytes);
  free(expected);
  return same;
}

CUfileError_t register_fd(CUfileHandle_t *handle, int fd) {
  CUfileDescr_t description;
  memset(&description, 0, sizeof description);
  description.type = CU_FILE_HANDLE_TYPE_OPAQUE_FD;
  description.handle.fd = fd;
  return cufile.HandleRegister(handle, &description);
}

CUfileHandle_t handle_of(int fd) {
  CUfileHandle_t handle = NULL;
  if (fd < 0) {
    give_up("no such file can be made here");
  }
  CUfileError_t error = register_fd(&handle, fd);
  if (error.err != CU_FILE_SUCCESS) { // handle.regular fails for it
    give_up(text("no file can be registered (%s)%s", error_text(error),
                 error.err == CU_FILE_HANDLE_NOT_REGISTERED ? ", as where udev has no record of the block device (scripts/cufile-suite run --udev)" : ""));
  }
  return handle;
}

void open_driver(void) {
  CUfileError_t error = cufile.DriverOpen();
  is_error("open", error, CU_FILE_SUCCESS);
  if (error.err != CU_FILE_SUCCESS) {
    give_up("the driver did not open");
  }
}

// ---- Configuration

void configure_text(const char *whole) {
  FILE *file = fopen("cufile.json", "w");
  if (file == NULL || fputs(whole, file) < 0 || fclose(file) != 0) {
    _exit(3);
  }
  char path[4096];
  if (getcwd(path, sizeof path - 16) == NULL) {
    _exit(3);
  }
  strcat(path, "/cufile.json");
  setenv("CUFILE_ENV_PATH_JSON", path, 1);
}

void configure(const char *properties, const char *others) {
  char whole[4096], folder[2048];
  if (getcwd(folder, sizeof folder) == NULL) {
    _exit(3);
  }
  snprintf(whole, sizeof whole,
           "{\n  // comments are part of the format\n  \"logging\": {\"dir\": \"%s\", \"level\": \"ERROR\"},\n"
           "  \"properties\": {\"allow_compat_mode\": true%s%s}%s%s\n}\n",
           folder, *properties == 0 ? "" : ", ", properties, *others == 0 ? "" : ",\n  ", others);
  configure_text(whole);
}

// ---- The process that runs them

struct check {
  char *result, *id, *expected, *observed;
  struct check *next;
};

struct job {
  const struct group *group;
  enum memory memory;
  pid_t process;
  int reports;
  double started;
  char line[4096];
  size_t filled;
  bool timed_out;
  char last[256]; // the id of its last check
};

static struct check *checks, **end_of_checks = &checks;
static int counts[4]; // passed, failed, observed, skipped
static const char *const result_names[] = {"passed", "failed", "observed", "skipped"};
static bool verbose;

static void add_check(const char *result, const char *id, const char *expected, const char *observed) {
  struct check *check = calloc(1, sizeof *check);
  check->result = strdup(result);
  check->id = strdup(id);
  check->expected = strdup(expected);
  check->observed = strdup(observed);
  *end_of_checks = check;
  end_of_checks = &check->next;
  // Two runs are compared by id.
  for (struct check *other = checks; other != check; other = other->next) {
    if (strcmp(other->id, id) == 0 && strcmp(result, "skipped") != 0) {
      printf("FAIL %s: two checks have this id\n", id);
      counts[1]++;
    }
  }
  for (int i = 0; i < 4; i++) {
    counts[i] += strcmp(result, result_names[i]) == 0;
  }
  if (strcmp(result, "failed") == 0) {
    printf("FAIL %s: expected %s, got %s\n", id, expected, observed);
  } else if (verbose) {
    printf("%s %s: %s\n", result, id, observed);
  }
  fflush(stdout);
}

// What was skipped, by its reason.
static void tell_skipped(void) {
  for (struct check *c = checks; c != NULL; c = c->next) {
    bool told = strcmp(c->result, "skipped") != 0;
    for (struct check *before = checks; before != c && !told; before = before->next) {
      told = strcmp(before->result, "skipped") == 0 && strcmp(before->observed, c->observed) == 0;
    }
    if (told) {
      continue;
    }
    printf("skipped, %s:", c->observed);
    for (struct check *same = c; same != NULL; same = same->next) {
      if (strcmp(same->result, "skipped") == 0 && strcmp(same->observed, c->observed) == 0) {
        printf(" %s", same->id);
      }
    }
    printf("\n");
  }
}

static void take_line(struct job *job, char *line) {
  char *fields[4] = {line, "", "", ""};
  for (int i = 1; i < 4; i++) {
    char *tab = strchr(fields[i - 1], '\t');
    if (tab == NULL) {
      break;
    }
    *tab = 0;
    fields[i] = tab + 1;
  }
  snprintf(job->last, sizeof job->last, "%s", fields[1]);
  add_check(fields[0], fields[1], fields[2], fields[3]);
}

static const char *name_with_kind(const struct job *job) {
  return text("%s%s", job->group->name, !(job->group->flags & USES_MEMORY) ? "" : job->memory == HOST ? "@host" : "@device");
}

static volatile sig_atomic_t stopping; // no group begins any more, and those under way are ended

static void stop(int signal) { stopping = signal; }

static void ended(struct job *job, int status) {
  if (stopping) {
    return;
  }
  const char *how = "its end";
  bool well = false;
  if (job->timed_out) {
    how = "no end within its time";
  } else if (WIFSIGNALED(status)) {
    how = text("signal %s", sigabbrev_np(WTERMSIG(status)));
  } else if (WEXITSTATUS(status) != 0) {
    how = text("exit code %d", WEXITSTATUS(status));
  } else {
    well = true;
  }
  const char *kind = strchr(name_with_kind(job), '@');
  const char *id = text("%s.ends%s", job->group->name, kind == NULL ? "" : kind);
  if (job->group->flags & MAY_CRASH) {
    add_check("observed", id, "", how);
  } else {
    add_check(well ? "passed" : "failed", id, "its end",
              well ? how : text("%s, after %s", how, *job->last == 0 ? "its start" : job->last));
  }
}

static int remove_one(const char *path, const struct stat *status, int type, struct FTW *walk) {
  (void)status, (void)type, (void)walk;
  return remove(path);
}

static const char *scratch;
static double deadline = 60;

static void run_group(struct job *job, int to) {
  setpgid(0, 0);
  signal(SIGINT, SIG_DFL);
  signal(SIGTERM, SIG_DFL);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  reports = to;
  running = job->group;
  memory = job->memory;
  const char *folder = text("%s/%s", scratch, name_with_kind(job));
  if (mkdir(folder, 0700) != 0 || chdir(folder) != 0) {
    _exit(3);
  }
  // What the library prints is not the suite's.
  int log = open("output", O_WRONLY | O_CREAT | O_APPEND, 0600);
  dup2(log, 1);
  dup2(log, 2);
  static const char *const settings[] = {"CUFILE_ENV_PATH_JSON",     "CUFILE_LOGFILE_PATH",       "CUFILE_LOGGING_LEVEL", "CUFILE_NVTX",
                                         "CUFILE_ALLOW_COMPAT_MODE", "CUFILE_FORCE_COMPAT_MODE"};
  for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) {
    unsetenv(settings[i]);
  }
  configure("", "");
  if (job->group->before != NULL) {
    job->group->before();
  }
  if (!(job->group->flags & UNLOADED)) {
    open_cuda();
    if (cuda_missing != NULL && (memory == DEVICE || job->group->flags & USES_CUDA)) {
      give_up(cuda_missing);
    }
    if (!load_cufile()) {
      _exit(0);
    }
  }
  job->group->run();
  fflush(NULL);
  _exit(0);
}

static bool start(struct job *job) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) {
    return false;
  }
  fflush(stdout);
  job->started = seconds_now();
  job->process = fork();
  if (job->process == 0) {
    close(ends[0]);
    run_group(job, ends[1]);
  }
  close(ends[1]);
  job->reports = ends[0];
  return job->process > 0;
}

// Reads what there is; false when the process has ended, and all that it said is known.
static bool follow(struct job *job) {
  struct pollfd waits = {job->reports, POLLIN, 0};
  while (poll(&waits, 1, 0) > 0) {
    ssize_t n = read(job->reports, job->line + job->filled, sizeof job->line - 1 - job->filled);
    if (n <= 0) {
      break;
    }
    job->filled += (size_t)n;
    job->line[job->filled] = 0;
    for (char *line_end; (line_end = strchr(job->line, '\n')) != NULL;) {
      *line_end = 0;
      take_line(job, job->line);
      job->filled -= (size_t)(line_end + 1 - job->line);
      memmove(job->line, line_end + 1, job->filled + 1);
    }
    if (job->filled == sizeof job->line - 1) {
      job->filled = 0;
    }
  }
  int status;
  if (!job->timed_out && seconds_now() - job->started > deadline) {
    job->timed_out = true;
    kill(-job->process, SIGKILL);
  }
  siginfo_t end = {0};
  if (waitid(P_PID, (id_t)job->process, &end, WEXITED | WNOHANG | WNOWAIT) != 0 || end.si_pid == 0) {
    return true;
  }
  if (poll(&waits, 1, 0) > 0 && (waits.revents & POLLIN)) {
    return true; // it said more before its end
  }
  kill(-job->process, SIGKILL); // what it left
  waitpid(job->process, &status, 0);
  close(job->reports);
  ended(job, status);
  return false;
}

static void print_json(FILE *to, const char *s) {
  fputc('"', to);
  for (; *s != 0; s++) {
    if (*s == '"' || *s == '\\') {
      fprintf(to, "\\%c", *s);
    } else if ((unsigned char)*s < 0x20) {
      fprintf(to, "\\u%04x", *s);
    } else {
      fputc(*s, to);
    }
  }
  fputc('"', to);
}

static int by_id(const void *a, const void *b) { return strcmp((*(struct check *const *)a)->id, (*(struct check *const *)b)->id); }

// One line for each check, in the order of their names: two files can be compared line by line.
static bool write_json(const char *path) {
  size_t count = 0, i = 0;
  for (struct check *c = checks; c != NULL; c = c->next) {
    count++;
  }
  struct check **sorted = calloc(count + 1, sizeof *sorted);
  for (struct check *c = checks; c != NULL; c = c->next) {
    sorted[i++] = c;
  }
  qsort(sorted, count, sizeof *sorted, by_id);
  FILE *to = fopen(path, "w");
  if (to == NULL) {
    perror(path);
    return false;
  }
  fputs("{\"library\": ", to);
  print_json(to, cufile_library);
  fputs(", \"checks\": [\n", to);
  for (i = 0; i < count; i++) {
    fputs("{\"id\": ", to);
    print_json(to, sorted[i]->id);
    fprintf(to, ", \"result\": \"%s\", \"expected\": ", sorted[i]->result);
    print_json(to, sorted[i]->expected);
    fputs(", \"observed\": ", to);
    print_json(to, sorted[i]->observed);
    fputs(i + 1 < count ? "},\n" : "}\n", to);
  }
  fputs("]}\n", to);
  free(sorted);
  return fclose(to) == 0;
}

// In a process of its own, so that this one stays without it.
static bool can_be_loaded(void) {
  fflush(stdout);
  pid_t child = fork();
  if (child == 0) {
    bool loaded = dlopen(cufile_library, RTLD_NOW | RTLD_LOCAL) != NULL;
    if (!loaded) {
      fprintf(stderr, "cufile-suite: %s\n", dlerror());
    }
    _exit(loaded ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  if (WIFSIGNALED(status)) {
    fprintf(stderr, "cufile-suite: loading %s ends with signal %s\n", cufile_library, sigabbrev_np(WTERMSIG(status)));
  }
  return status == 0;
}

static int usage(FILE *to) {
  fputs("usage: cufile-suite [OPTION...] [LIBRARY]\n"
        "Checks the behaviour of a libcufile.so.0: LIBRARY, else the one that LD_LIBRARY_PATH leads to.\n"
        "  --list             the groups, and what each is about\n"
        "  --only GROUP       this group, or those whose names begin so (handle.); may be repeated\n"
        "  --memory KIND      host, device or both (both). Device memory needs libcuda.so.1; GPUNVME_LIBCUDA names another\n"
        "  --json FILE        every check's id, result, expected and observed value\n"
        "  --scratch FOLDER   where the files of the checks are made (TMPDIR, else /tmp); its file system is what is tested\n"
        "  --jobs N           groups at once (a processor each, 8 at most)\n"
        "  --deadline S       seconds that one group may take (60)\n"
        "  --verbose          each check as it is made, also those that passed\n"
        "Ends with 0 if no check failed, 1 if one did, 2 if it was called wrongly, 3 if a signal ended it before all checks were made.\n",
        to);
  return 2;
}

int main(int count, char **arguments) {
  const char *only[32] = {0}, *json = NULL, *kinds = "both", *name_of_library = NULL;
  int only_count = 0, at_once = (int)sysconf(_SC_NPROCESSORS_ONLN);
  at_once = at_once > 8 ? 8 : at_once;
  bool list = false;
  scratch = getenv("TMPDIR") == NULL ? "/tmp" : getenv("TMPDIR");
  for (int i = 1; i < count; i++) {
    const char *name = arguments[i], *value = i + 1 < count ? arguments[i + 1] : NULL;
    if (strcmp(name, "--list") == 0) {
      list = true;
    } else if (strcmp(name, "--verbose") == 0) {
      verbose = true;
    } else if (strcmp(name, "--help") == 0) {
      usage(stdout);
      return 0;
    } else if (name[0] != '-') {
      cufile_library = name_of_library = name;
    } else if (value == NULL) {
      return usage(stderr);
    } else {
      i++;
      if (strcmp(name, "--only") == 0 && only_count < 32) {
        only[only_count++] = value;
      } else if (strcmp(name, "--memory") == 0) {
        kinds = value;
      } else if (strcmp(name, "--json") == 0) {
        json = value;
      } else if (strcmp(name, "--scratch") == 0) {
        scratch = value;
      } else if (strcmp(name, "--jobs") == 0) {
        at_once = atoi(value);
      } else if (strcmp(name, "--deadline") == 0) {
        deadline = atof(value);
      } else {
        return usage(stderr);
      }
    }
  }
  bool host = strcmp(kinds, "device") != 0, device = strcmp(kinds, "host") != 0;
  if ((host && device && strcmp(kinds, "both") != 0) || at_once < 1 || deadline <= 0) {
    return usage(stderr);
  }
  struct job *jobs = calloc(1024, sizeof *jobs);
  int job_count = 0;
  for (size_t t = 0; t < sizeof topics / sizeof *topics; t++) {
    for (const struct group *group = topics[t]; group->name != NULL; group++) {
      bool wanted = only_count == 0;
      for (int i = 0; i < only_count; i++) {
        wanted |= strncmp(group->name, only[i], strlen(only[i])) == 0;
      }
      if (wanted && list) {
        printf("%-28s %s\n", group->name, group->about);
      }
      bool with_memory = group->flags & USES_MEMORY;
      if (wanted && (host || !with_memory)) {
        jobs[job_count++] = (struct job){.group = group, .memory = HOST};
      }
      if (wanted && device && with_memory) {
        jobs[job_count++] = (struct job){.group = group, .memory = DEVICE};
      }
    }
  }
  if (list) {
    return 0;
  }
  if (job_count == 0) {
    fprintf(stderr, "cufile-suite: no group is named so; --list names them\n");
    return 2;
  }
  if (strchr(cufile_library, '/') != NULL && (cufile_library = realpath(name_of_library, NULL)) == NULL) {
    perror(name_of_library);
    return 2;
  }
  if (!can_be_loaded()) {
    return 2;
  }
  char folder[4096];
  snprintf(folder, sizeof folder, "%s/cufile-suite-XXXXXX", scratch);
  if (mkdtemp(folder) == NULL) {
    perror(folder);
    return 2;
  }
  char *whole = realpath(folder, NULL);
  scratch = whole;
  int next = 0, under_way = 0;
  signal(SIGINT, stop);
  signal(SIGTERM, stop);
  while ((next < job_count && !stopping) || under_way > 0) {
    while (next < job_count && under_way < at_once && !stopping) {
      if (!start(&jobs[next])) {
        perror("cufile-suite");
        return 2;
      }
      next++;
      under_way++;
    }
    for (int i = 0; i < next; i++) {
      if (jobs[i].process > 0 && stopping) {
        kill(-jobs[i].process, SIGKILL);
      }
      if (jobs[i].process > 0 && !follow(&jobs[i])) {
        jobs[i].process = 0;
        under_way--;
      }
    }
    nanosleep(&(struct timespec){0, 2000000}, NULL);
  }
  if (getenv("CUFILE_SUITE_KEEP") == NULL) {
    nftw(whole, remove_one, 16, FTW_DEPTH | FTW_PHYS);
  }
  if (json != NULL && !write_json(json)) {
    return 2;
  }
  tell_skipped();
  printf("%d checks (%d of them observed), %d failed, %d skipped\n", counts[0] + counts[1] + counts[2], counts[2], counts[1], counts[3]);
  if (stopping) {
    fprintf(stderr, "cufile-suite: ended by a signal; %d of %d groups were begun\n", next, job_count);
    return 3;
  }
  return counts[1] == 0 ? 0 : 1;
}
