// How a virtual machine comes to be, or not; each in a process of its own. Arguments: a folder of a Java, an empty folder.
#include <dlfcn.h>
#include <errno.h>
#include <glob.h>
#include <jni.h>
#include <limits.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/stat.h>
#include <time.h>

#include "check.h"
#include "gpunvme.h"

static const char *java_home, *scratch;

static int open_device(void) {
  gpunvme_storage *storage = NULL;
  int code = gpunvme_open("sim:size=1MiB", "cpu", 0, &storage);
  EXPECT((code >= 0) == (storage != NULL));
  if (code >= 0) {
    EXPECT_CODE(GPUNVME_OK, gpunvme_close(storage));
  }
  return code;
}

static void refuses_options(void) {
  const char *const unknown[] = {"-Xnonsense"};
  EXPECT_CODE(GPUNVME_ERROR_JAVA, gpunvme_start(java_home, unknown, 1));
  EXPECT_ERROR("Unrecognized option: -Xnonsense");
  EXPECT_CODE(GPUNVME_OK, gpunvme_start(java_home, NULL, 0));
  EXPECT_CODE(GPUNVME_OK, open_device());
}

static void an_unknown_option_is_named_and_the_next_start_works(void) {
  in_child(refuses_options);
}

static void takes_options(void) {
  const char *const options[] = {"-Xmx200m", "-XX:+UseParallelGC"};
  setenv("GPUNVME_JAVA_OPTS", "  -Xint  -Dx=y ", 1);
  EXPECT_CODE(GPUNVME_OK, gpunvme_start(java_home, options, 2));
  EXPECT_CODE(GPUNVME_OK, gpunvme_start("/nowhere", NULL, 0));
}

static void options_of_the_caller_and_the_environment_count(void) {
  in_child(takes_options);
}

static void gives_up(void) {
  char jar[PATH_MAX];
  // It prints what its module system has to say, and the process goes on.
  EXPECT(freopen("/dev/null", "w", stderr) != NULL);
  snprintf(jar, sizeof jar, "%s/gpunvme-capi.jar", scratch);
  FILE *empty = fopen(jar, "w");
  EXPECT(empty != NULL);
  fclose(empty);
  setenv("GPUNVME_HOME", scratch, 1);
  EXPECT_CODE(GPUNVME_ERROR_JAVA, gpunvme_start(java_home, NULL, 0));
  EXPECT_ERROR("gave up its start");
  unlink(jar);
  unsetenv("GPUNVME_HOME");
  EXPECT_CODE(GPUNVME_ERROR_JAVA, gpunvme_start(java_home, NULL, 0));
}

static void a_start_that_ends_in_abort_leaves_the_process_alive(void) {
  in_child(gives_up);
}

static void is_not_there(void) {
  EXPECT_CODE(GPUNVME_ERROR_JAVA, gpunvme_start("/nowhere", NULL, 0));
  EXPECT_ERROR("/nowhere");
  setenv("GPUNVME_HOME", scratch, 1);
  EXPECT_CODE(GPUNVME_ERROR_JAVA, open_device());
  EXPECT_ERROR("GPUNVME_HOME");
}

static void no_java_and_no_jars_are_errors(void) {
  in_child(is_not_there);
}

// As a program does that has a virtual machine for its own purposes.
static JavaVM *make_vm(const char *option) {
  char path[PATH_MAX];
  snprintf(path, sizeof path, "%s/lib/server/libjvm.so", java_home);
  void *library = dlopen(path, RTLD_NOW);
  jint (*create)(JavaVM **, void **, void *) = NULL;
  if (library != NULL) {
    *(void **)&create = dlsym(library, "JNI_CreateJavaVM");
  }
  JavaVMOption options[] = {{.optionString = "-Xrs"}, {.optionString = (char *)option}};
  JavaVMInitArgs arguments = {.version = JNI_VERSION_10, .nOptions = 2, .options = options};
  JavaVM *vm = NULL;
  JNIEnv *env;
  EXPECT(create != NULL && create(&vm, (void **)&env, &arguments) == JNI_OK);
  return vm;
}

static void joins(void) {
  JavaVM *vm = make_vm("--enable-native-access=ALL-UNNAMED");
  EXPECT_CODE(GPUNVME_OK, open_device());
  EXPECT((*vm)->DestroyJavaVM(vm) == JNI_OK); // no thread of ours keeps it
}

static void a_virtual_machine_that_is_there_is_used(void) {
  in_child(joins);
}

static void is_denied(void) {
  make_vm("--illegal-native-access=deny");
  EXPECT_CODE(GPUNVME_ERROR_JAVA, open_device());
  EXPECT_ERROR("--enable-native-access=ALL-UNNAMED");
}

static void copy_file(const char *from, const char *to) {
  char buffer[1 << 16];
  FILE *in = fopen(from, "r"), *out = fopen(to, "w");
  EXPECT(in != NULL && out != NULL);
  size_t n;
  while ((n = fread(buffer, 1, sizeof buffer, in)) > 0) {
    EXPECT(fwrite(buffer, 1, n, out) == n);
  }
  fclose(in);
  fclose(out);
}

// As where a wheel has one and the system another.
static void meets_a_copy(void) {
  Dl_info self;
  char copy[PATH_MAX], jars[PATH_MAX];
  EXPECT(dladdr((void *)dlsym(RTLD_DEFAULT, "gpunvme_open"), &self) != 0);
  snprintf(copy, sizeof copy, "%s/copy-of-libgpunvme.so", scratch);
  copy_file(self.dli_fname, copy);
  snprintf(jars, sizeof jars, "%.*s/app", (int)(strrchr(self.dli_fname, '/') - self.dli_fname), self.dli_fname);
  EXPECT_CODE(GPUNVME_OK, open_device());
  setenv("GPUNVME_HOME", jars, 1);
  void *library = dlopen(copy, RTLD_NOW | RTLD_LOCAL);
  int (*open_there)(const char *, const char *, uint32_t, gpunvme_storage **) = NULL;
  int (*close_there)(gpunvme_storage *) = NULL;
  EXPECT(library != NULL);
  *(void **)&open_there = dlsym(library, "gpunvme_open");
  *(void **)&close_there = dlsym(library, "gpunvme_close");
  EXPECT(open_there != NULL && open_there != gpunvme_open);
  gpunvme_storage *storage = NULL;
  EXPECT_CODE(GPUNVME_OK, open_there("sim:size=1MiB", "cpu", 0, &storage));
  EXPECT_CODE(GPUNVME_OK, close_there(storage));
  EXPECT_CODE(GPUNVME_OK, open_device());
  unlink(copy);
}

static void two_copies_of_the_library_share_one(void) {
  in_child(meets_a_copy);
}

static void inherits(void) {
  EXPECT_CODE(GPUNVME_ERROR_FORKED, open_device());
}

static void forks(void) {
  make_vm("-Xmx100m");
  in_child(inherits);
}

static void a_virtual_machine_of_the_parent_is_not_waited_for(void) {
  in_child(forks);
}

static void one_that_allows_nothing_says_what_it_needs(void) {
  in_child(is_denied);
}

static atomic_int interrupts, elsewhere;
static pthread_t main_thread;

static void on_interrupt(int signal) {
  (void)signal;
  interrupts++;
  elsewhere += !pthread_equal(pthread_self(), main_thread);
}

// Threads of this process that do not block the signal.
static int threads_that_take(int signal) {
  glob_t threads;
  int found = 0;
  EXPECT(glob("/proc/self/task/*/status", 0, NULL, &threads) == 0);
  for (size_t i = 0; i < threads.gl_pathc; i++) {
    char line[200];
    unsigned long long blocked;
    FILE *status = fopen(threads.gl_pathv[i], "r");
    while (status != NULL && fgets(line, sizeof line, status) != NULL) {
      if (sscanf(line, "SigBlk: %llx", &blocked) == 1) {
        found += (blocked >> (signal - 1) & 1) == 0;
      }
    }
    if (status != NULL) {
      fclose(status);
    }
  }
  globfree(&threads);
  return found;
}

static void keeps_handlers(void) {
  const int signals[] = {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGCHLD, SIGALRM};
  const int count = sizeof signals / sizeof *signals;
  struct sigaction action = {.sa_handler = on_interrupt};
  main_thread = pthread_self();
  for (int i = 0; i < count; i++) {
    sigaction(signals[i], &action, NULL);
  }
  EXPECT_CODE(GPUNVME_OK, gpunvme_start(java_home, NULL, 0));
  EXPECT_CODE(GPUNVME_OK, open_device()); // Java prepares more of its classes
  for (int i = 0; i < count; i++) {
    struct sigaction now;
    sigaction(signals[i], NULL, &now);
    EXPECT(now.sa_handler == on_interrupt);
  }
  for (int i = 0; i < 100; i++) {
    kill(getpid(), signals[i % count]); // taken before kill returns, by this thread unless another takes them
  }
  EXPECT(interrupts == 100);
  EXPECT(elsewhere == 0);
  // The threads of the virtual machine would not take them either where this one does not.
  EXPECT(threads_that_take(SIGINT) == 1);
  EXPECT(threads_that_take(SIGALRM) == 1);
}

static void signals_stay_with_the_program(void) {
  in_child(keeps_handlers);
}

// The jars in a folder that has no archive yet: a copy, so that what is made for it lies there.
static void jars_without_archive(char *folder, size_t capacity) {
  glob_t jars;
  char library[PATH_MAX], pattern[PATH_MAX + 16], to[2 * PATH_MAX];
  Dl_info self;
  snprintf(folder, capacity, "%s/unprepared", scratch);
  EXPECT(dladdr((void *)gpunvme_start, &self) != 0 && realpath(self.dli_fname, library) != NULL);
  *strrchr(library, '/') = 0;
  snprintf(pattern, sizeof pattern, "%s/app/*.jar", library);
  EXPECT(glob(pattern, 0, NULL, &jars) == 0 && mkdir(folder, 0755) == 0);
  for (size_t i = 0; i < jars.gl_pathc; i++) {
    snprintf(to, sizeof to, "%s%s", folder, strrchr(jars.gl_pathv[i], '/'));
    EXPECT(symlink(jars.gl_pathv[i], to) == 0);
  }
  globfree(&jars);
}

static atomic_int ended_children;

static void on_child(int signal) {
  (void)signal;
  ended_children++;
}

// The first start in a folder has an archive made in the background: the program does not notice.
static void keeps_handler_while_it_prepares(void) {
  char folder[PATH_MAX], made[PATH_MAX + 32];
  struct sigaction action = {.sa_handler = on_child, .sa_flags = SA_RESTART}, now;
  glob_t found = {0};
  int held[2];
  char byte;
  alarm(240); // on a busy machine it takes a while
  jars_without_archive(folder, sizeof folder);
  setenv("GPUNVME_HOME", folder, 1);
  unsetenv("GPUNVME_ARCHIVE");
  sigaction(SIGCHLD, &action, NULL);
  EXPECT(pipe(held) == 0); // without O_CLOEXEC
  EXPECT_CODE(GPUNVME_OK, gpunvme_start(java_home, NULL, 0));
  EXPECT_CODE(GPUNVME_OK, open_device());
  close(held[1]);
  EXPECT(read(held[0], &byte, 1) == 0); // nobody else has it
  snprintf(made, sizeof made, "%s/gpunvme-*.jsa", folder);
  for (int i = 0; i < 2000 && glob(made, 0, NULL, &found) != 0; i++) {
    EXPECT(sigaction(SIGCHLD, NULL, &now) == 0 && now.sa_handler == on_child);
    EXPECT(waitpid(-1, NULL, WNOHANG) == -1 && errno == ECHILD);
    if (check_failures > 0) {
      return;
    }
    usleep(100000);
  }
  EXPECT(found.gl_pathc == 1);
  EXPECT(sigaction(SIGCHLD, NULL, &now) == 0 && now.sa_handler == on_child && ended_children == 0);
}

static void what_is_prepared_in_the_background_is_not_noticed(void) {
  in_child(keeps_handler_while_it_prepares);
}

static sigjmp_buf after_crash;

static void on_crash(int signal) {
  (void)signal;
  siglongjmp(after_crash, 1);
}

static void handles_crashes(void) {
  struct sigaction action = {.sa_handler = on_crash, .sa_flags = SA_NODEFER};
  sigaction(SIGSEGV, &action, NULL);
  EXPECT_CODE(GPUNVME_OK, open_device());
  volatile int crashed = 0;
  if (sigsetjmp(after_crash, 1) == 0) {
    raise(SIGSEGV);
  } else {
    crashed = 1;
  }
  EXPECT(crashed);
  EXPECT_CODE(GPUNVME_OK, open_device());
}

static void a_crash_handler_from_before_is_called(void) {
  in_child(handles_crashes);
}

// Files that a virtual machine leaves when it is not ended, which ours never is.
static int left_behind(void) {
  char pattern[100];
  glob_t found;
  snprintf(pattern, sizeof pattern, "/tmp/hsperfdata_*/%d", (int)getpid());
  int code = glob(pattern, 0, NULL, &found);
  globfree(&found);
  return code == 0;
}

static void is_quiet(void) {
  char path[PATH_MAX];
  snprintf(path, sizeof path, "%s/output", scratch);
  fflush(stdout);
  int out = dup(1), error = dup(2);
  EXPECT(freopen(path, "w", stdout) != NULL);
  dup2(1, 2);
  int code = gpunvme_start(java_home, NULL, 0);
  code = code < 0 ? code : open_device();
  long printed = lseek(1, 0, SEEK_END);
  dup2(out, 1);
  dup2(error, 2);
  EXPECT_CODE(GPUNVME_OK, code);
  EXPECT(printed == 0);
  EXPECT(!left_behind());
}

static void nothing_is_printed(void) {
  in_child(is_quiet);
}

static void *read_for_ever(void *storage) {
  uint8_t bytes[4096];
  for (uint64_t at = 0;; at = (at + 512) % 1000000) {
    gpunvme_read(storage, at, (uintptr_t)bytes, sizeof bytes);
  }
  return NULL;
}

static void is_busy_and_exits(void) {
  gpunvme_storage *storage = NULL;
  gpunvme_request *request = NULL;
  pthread_t threads[4];
  static uint8_t bytes[1 << 20];
  EXPECT_CODE(GPUNVME_OK, gpunvme_open("sim:size=1MiB,latency=1ms", "cpu", 0, &storage));
  for (int i = 0; i < 4; i++) {
    EXPECT(pthread_create(&threads[i], NULL, read_for_ever, storage) == 0);
  }
  usleep(10000); // wherever they are then
  EXPECT_CODE(GPUNVME_OK, gpunvme_submit_read(storage, &(gpunvme_range){0, (uintptr_t)bytes, sizeof bytes}, 1, &request));
  exit(check_failures != 0);
}

static void exit_waits_for_no_transfer_and_crashes_nothing(void) {
  for (int i = 0; i < 5; i++) {
    in_child(is_busy_and_exits);
  }
}

static void ends_here(void) {
  EXPECT_CODE(GPUNVME_OK, open_device());
  exit(check_failures != 0);
}

static void *ends_elsewhere(void *unused) {
  ends_here();
  return unused;
}

static void ends_in_a_thread(void) {
  pthread_t thread;
  EXPECT_CODE(GPUNVME_OK, gpunvme_start(java_home, NULL, 0));
  EXPECT(pthread_create(&thread, NULL, ends_elsewhere, NULL) == 0);
  pthread_join(thread, NULL);
}

static void any_thread_may_exit(void) {
  in_child(ends_here);
  in_child(ends_in_a_thread);
}

// A controller that fails when it is told to shut down, of which the driver warns: this is how a shutdown is seen from outside.
static gpunvme_storage *open_telltale(void) {
  gpunvme_storage *storage = NULL;
  EXPECT_CODE(GPUNVME_OK, gpunvme_open("sim:size=1MiB,latency=1ms,faults=cfs on shutdown", "cpu", 0, &storage));
  return storage;
}

// How often a controller was told to shut down while a test ran in a child, and in children of that.
static int shutdowns_in(void (*test)(void)) {
  char path[PATH_MAX], line[1000];
  int told = 0, error = dup(2);
  snprintf(path, sizeof path, "%s/warnings", scratch);
  EXPECT(freopen(path, "w", stderr) != NULL);
  in_child(test);
  dup2(error, 2);
  close(error);
  FILE *warnings = fopen(path, "r");
  EXPECT(warnings != NULL);
  while (fgets(line, sizeof line, warnings) != NULL) {
    told += strstr(line, "shutdown of sim:") != NULL;
  }
  fclose(warnings);
  return told;
}

static void leaves_two_open(void) {
  open_telltale();
  open_telltale();
  exit(check_failures != 0);
}

static void closes_and_exits(void) {
  EXPECT_CODE(GPUNVME_OK, gpunvme_close(open_telltale()));
  exit(check_failures != 0);
}

static void leaves_one_that_is_read(void) {
  gpunvme_storage *storage = open_telltale();
  pthread_t threads[4];
  for (int i = 0; i < 4; i++) {
    EXPECT(pthread_create(&threads[i], NULL, read_for_ever, storage) == 0);
  }
  usleep(10000); // wherever they are then
  exit(check_failures != 0);
}

static void ends_a_virtual_machine_of_its_own(void) {
  JavaVM *vm = make_vm("--enable-native-access=ALL-UNNAMED");
  gpunvme_storage *storage;
  struct timespec before, after;
  EXPECT_CODE(GPUNVME_OK, gpunvme_open("sim:size=1MiB,shutdown=2s", "cpu", 0, &storage));
  clock_gettime(CLOCK_MONOTONIC, &before);
  EXPECT((*vm)->DestroyJavaVM(vm) == JNI_OK);
  clock_gettime(CLOCK_MONOTONIC, &after);
  EXPECT(after.tv_sec - before.tv_sec >= 1); // hooks of Java's own may have ended logging, so no warning tells
  exit(check_failures != 0); // which finds nothing to end any more
}

static int exits(void *unused) {
  (void)unused;
  exit(check_failures != 0);
}

static void exits_within_a_call(void) {
  static uint8_t bytes[1 << 20];
  gpunvme_storage *storage = open_telltale();
  gpunvme_read_ranges_cancellable(storage, &(gpunvme_range){0, (uintptr_t)bytes, sizeof bytes}, 1, exits, NULL);
  EXPECT(!"it came back");
}

static void exit_shuts_down_what_is_open(void) {
  EXPECT(shutdowns_in(leaves_two_open) == 2);
  EXPECT(shutdowns_in(closes_and_exits) == 1);
  EXPECT(shutdowns_in(leaves_one_that_is_read) == 1);
  EXPECT(shutdowns_in(exits_within_a_call) == 1);
}

static void *forks_and_waits(void *unused) {
  fflush(stdout);
  pid_t child = fork();
  if (child == 0) {
    alarm(60);
    exit(0);
  }
  int status = -1;
  EXPECT(waitpid(child, &status, 0) == child && status == 0);
  return unused;
}

static void forks_and_goes_on(void) {
  uint8_t bytes[4096];
  gpunvme_storage *storage = open_telltale();
  // By a thread that is not attached to Java: exit detaches those that are, which waits for locks that came with the fork.
  pthread_t thread;
  EXPECT(pthread_create(&thread, NULL, forks_and_waits, NULL) == 0);
  pthread_join(thread, NULL);
  EXPECT_CODE(GPUNVME_OK, gpunvme_read(storage, 0, (uintptr_t)bytes, sizeof bytes));
}

static void the_owners_end_of_a_virtual_machine_shuts_down_what_is_open(void) {
  in_child(ends_a_virtual_machine_of_its_own);
}

static void exit_of_a_fork_leaves_the_parents_open(void) {
  EXPECT(shutdowns_in(forks_and_goes_on) == 0);
}

static gpunvme_storage *left_open;

static void uses_what_was_shut_down(void) {
  uint8_t bytes[4096];
  gpunvme_storage *another;
  EXPECT_CODE(GPUNVME_ERROR_CLOSED, gpunvme_read(left_open, 0, (uintptr_t)bytes, sizeof bytes));
  EXPECT_ERROR("the process is ending");
  EXPECT_CODE(GPUNVME_ERROR_CLOSED, gpunvme_open("sim:size=1MiB", "cpu", 0, &another));
  EXPECT_ERROR("the process is ending");
  EXPECT_CODE(GPUNVME_OK, gpunvme_close(left_open));
  fflush(stdout);
  _exit(check_failures != 0);
}

static void has_a_handler_of_its_own(void) {
  atexit(uses_what_was_shut_down); // before the library's, so it runs after that
  left_open = open_telltale();
  exit(1);
}

static void later_calls_say_that_the_process_ends(void) {
  EXPECT(shutdowns_in(has_a_handler_of_its_own) == 1);
}

static void is_refused(void) {
  EXPECT_CODE(GPUNVME_ERROR_FORKED, open_device());
  EXPECT_ERROR("fork");
}

static void a_fork_is_refused_and_may_end(void) {
  EXPECT_CODE(GPUNVME_OK, gpunvme_start(java_home, NULL, 0));
  EXPECT_CODE(GPUNVME_OK, open_device());
  in_child(is_refused);
  EXPECT_CODE(GPUNVME_OK, open_device());
}

int main(int count, char **arguments) {
  if (count != 3) {
    return 2;
  }
  java_home = arguments[1];
  scratch = arguments[2];
  RUN(no_java_and_no_jars_are_errors);
  RUN(an_unknown_option_is_named_and_the_next_start_works);
  RUN(options_of_the_caller_and_the_environment_count);
  RUN(a_start_that_ends_in_abort_leaves_the_process_alive);
  RUN(a_virtual_machine_that_is_there_is_used);
  RUN(two_copies_of_the_library_share_one);
  RUN(a_virtual_machine_of_the_parent_is_not_waited_for);
  RUN(one_that_allows_nothing_says_what_it_needs);
  RUN(signals_stay_with_the_program);
  RUN(what_is_prepared_in_the_background_is_not_noticed);
  RUN(a_crash_handler_from_before_is_called);
  RUN(nothing_is_printed);
  RUN(exit_waits_for_no_transfer_and_crashes_nothing);
  RUN(any_thread_may_exit);
  RUN(exit_shuts_down_what_is_open);
  RUN(the_owners_end_of_a_virtual_machine_shuts_down_what_is_open);
  RUN(exit_of_a_fork_leaves_the_parents_open);
  RUN(later_calls_say_that_the_process_ends);
  RUN(a_fork_is_refused_and_may_end); // last: this process has started then
  return check_failed_tests != 0;
}
