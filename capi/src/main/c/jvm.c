// The virtual machine: made here, or found in the process.
#include <dirent.h>
#include <dlfcn.h>
#include <jni.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "java.h"
#include "shim.h"

#define JAVA_OPTIONS "GPUNVME_JAVA_OPTS"
#define ARCHIVE "GPUNVME_ARCHIVE"
#define MODULE "io.gpunvme.capi"

typedef jint(JNICALL *create_function)(JavaVM **, void **, void *);
typedef jint(JNICALL *created_function)(JavaVM **, jsize, jsize *);

// ---- what a virtual machine says while it starts, which is all there is about why it does not

static pthread_mutex_t said_lock = PTHREAD_MUTEX_INITIALIZER;
static notes said;  // guarded by said_lock
static int hearing; // the same: whether a start is under way

// Whether this thread is the one that starts it.
static _Thread_local int starting;

static void hear(int on) {
  pthread_mutex_lock(&said_lock);
  hearing = on;
  said.used = 0;
  said.text[0] = 0;
  pthread_mutex_unlock(&said_lock);
}

// In one line, for a message.
static void heard(char *text, size_t capacity) {
  pthread_mutex_lock(&said_lock);
  size_t to = 0;
  for (const char *from = said.text; *from != 0 && to + 2 < capacity; from++) {
    int space = *from == '\n' || *from == '\t' || *from == '\r';
    if (!space) {
      text[to++] = *from;
    } else if (to > 0 && text[to - 1] != ' ') {
      text[to++] = ' ';
    }
  }
  text[to] = 0;
  pthread_mutex_unlock(&said_lock);
}

static jint JNICALL on_print(FILE *file, const char *format, va_list arguments) {
  (void)file; // standard output belongs to the program
  char line[1024];
  int length = vsnprintf(line, sizeof line, format, arguments);
  pthread_mutex_lock(&said_lock);
  int listening = hearing;
  if (listening) {
    note(&said, "%s", line);
  }
  pthread_mutex_unlock(&said_lock);
  if (!listening) { // options of the user's that print, and crashes
    fputs(line, stderr);
  }
  return length;
}

// A virtual machine that cannot go on with its start ends the process unless this does not return. It holds locks of
// its own here, so its thread must not be unwound: it sleeps, and the process lives on without Java.
static void JNICALL on_abort(void) {
  if (!starting) {
    return; // a crash of later
  }
  char why[1400];
  failure f;
  heard(why, sizeof why);
  shim_fail(&f, GPUNVME_ERROR_JAVA, "the virtual machine gave up its start, and a process can start only one: %s",
      *why == 0 ? "it has printed why" : why); // what Java itself prints then does not come by on_print
  shim_start_aborted(&f);
  for (;;) {
    pause();
  }
}

// ---- its options

typedef struct option_list {
  JavaVMOption *options;
  size_t count;
  char *words; // GPUNVME_JAVA_OPTS, cut into options in place
} option_list;

static void free_options(option_list *list) {
  free(list->options);
  free(list->words);
}

static void add(option_list *list, const char *option, const void *hook) {
  list->options[list->count++] = (JavaVMOption){.optionString = (char *)option, .extraInfo = (void *)hook};
}

// Nothing of ours lies in the heap for long, so the collector with the fewest threads is best; unless told otherwise.
static int names_collector(const option_list *list) {
  for (size_t i = 0; i < list->count; i++) {
    const char *option = list->options[i].optionString;
    size_t length = strlen(option);
    if (strncmp(option, "-XX:+Use", 8) == 0 && length > 10 && strcmp(option + length - 2, "GC") == 0) {
      return 1;
    }
  }
  return 0;
}

// The option that makes the start quick, PATH_MAX + 64 bytes: the archive that is there, or else, for those who build the library,
// where Java makes one before the start ends. Empty if neither. missing, PATH_MAX bytes: the archive that is to be made for the next
// start, empty if none is. A package has one for its own Java, and none is made there for others.
static void archive_option(char *option, char *missing, const char *libjvm, const char *jars) {
  const char *asked = getenv(ARCHIVE);
  char archive[PATH_MAX];
  *option = *missing = 0;
  if ((asked != NULL && strcmp(asked, "off") == 0) || !shim_archive(libjvm, jars, archive)) {
    return;
  }
  if (access(archive, R_OK) == 0) {
    snprintf(option, PATH_MAX + 64, "-XX:SharedArchiveFile=%s", archive);
  } else if (shim_has_own(jars) || access(jars, W_OK) != 0) {
    return;
  } else if (asked != NULL && strcmp(asked, "now") == 0) {
    snprintf(option, PATH_MAX + 64, "-Dgpunvme.archive=%s", archive);
  } else {
    strcpy(missing, archive);
  }
}

// Has another process make it in the background, as Python does with what it compiles.
static void make_archive(char *archive, const char *libjvm, char *module_path) {
  static const char under[] = "/lib/server/libjvm.so";
  char java[PATH_MAX + 16];
  const size_t length = strlen(libjvm), home = length - (sizeof under - 1);
  if (length < sizeof under || strcmp(libjvm + home, under) != 0) {
    return;
  }
  snprintf(java, sizeof java, "%.*s/bin/java", (int)home, libjvm);
  char *const words[] = {java, "-XX:+UseSerialGC", "-Xlog:disable", "-XX:-UsePerfData", module_path, "-m",
      MODULE "/io.gpunvme.capi.Archive", archive, NULL};
  shim_in_background(words);
}

// Ours first: where two contradict each other the later one counts. False without memory.
static int make_options(option_list *list, const char *module_path, const char *archive, const start_options *wanted) {
  static const char *const ours[] = {
      "-Xrs",
      "-Xlog:disable", // it would go to standard output
      "-XX:+DisplayVMOutputToStderr",
      "-XX:-UsePerfData", // files in /tmp that would stay
      "--add-modules=" MODULE,
      "--enable-native-access=io.gpunvme.ffi,io.gpunvme.cuda," MODULE,
      "--illegal-native-access=deny",
  };
  enum { OURS = sizeof ours / sizeof *ours, HOOKS = 2, PATHS = 2, COLLECTORS = 1 };
  const char *environment = getenv(JAVA_OPTIONS);
  list->words = strdup(environment == NULL ? "" : environment);
  size_t most = OURS + HOOKS + PATHS + COLLECTORS + wanted->count + (list->words == NULL ? 0 : strlen(list->words));
  list->options = calloc(most, sizeof *list->options);
  if (list->words == NULL || list->options == NULL) {
    return 0;
  }
  add(list, "vfprintf", (const void *)on_print);
  add(list, "abort", (const void *)on_abort);
  if (*module_path != 0) {
    add(list, module_path, NULL);
  }
  if (*archive != 0) {
    add(list, archive, NULL);
  }
  for (size_t i = 0; i < OURS; i++) {
    add(list, ours[i], NULL);
  }
  for (size_t i = 0; i < wanted->count; i++) {
    add(list, wanted->options[i], NULL);
  }
  char *rest = NULL;
  for (char *word = strtok_r(list->words, " \t\n", &rest); word != NULL; word = strtok_r(NULL, " \t\n", &rest)) {
    add(list, word, NULL);
  }
  if (!names_collector(list)) {
    add(list, "-XX:+UseSerialGC", NULL);
  }
  return 1;
}

// ---- making one

static const char *meaning(jint code) {
  switch (code) {
    case JNI_EVERSION: return "it is older than Java 24";
    case JNI_ENOMEM: return "not enough memory";
    case JNI_EINVAL: return "it does not take these options";
    default: return "it does not say why";
  }
}

static int make(create_function create, const char *libjvm, const char *jars, const start_options *wanted, JavaVM **vm,
    JNIEnv **env, failure *f) {
  char module_path[PATH_MAX + 16] = "", archive[PATH_MAX + 64], missing[PATH_MAX];
  if (!shim_is_own(libjvm, jars)) {
    snprintf(module_path, sizeof module_path, "--module-path=%s", jars);
  }
  archive_option(archive, missing, libjvm, jars);
  option_list list = {0};
  if (!make_options(&list, module_path, archive, wanted)) {
    free_options(&list);
    return shim_fail(f, GPUNVME_ERROR_MEMORY, "no memory for the options of the virtual machine");
  }
  JavaVMInitArgs arguments = {
      .version = JNI_VERSION_24, .nOptions = (jint)list.count, .options = list.options, .ignoreUnrecognized = JNI_FALSE};
  hear(1);
  starting = 1;
  jint code = create(vm, (void **)env, &arguments);
  starting = 0;
  free_options(&list);
  char why[1400];
  heard(why, sizeof why);
  hear(0);
  if (code == JNI_OK) {
    if (*missing != 0) {
      make_archive(missing, libjvm, module_path);
    }
    return GPUNVME_OK;
  }
  return shim_fail(f, GPUNVME_ERROR_JAVA, "%s did not start (JNI_CreateJavaVM: %d): %s; the options are those of gpunvme_start and " JAVA_OPTIONS,
      libjvm, (int)code, *why == 0 ? meaning(code) : why);
}

static int load_and_make(const start_options *wanted, JavaVM **vm, JNIEnv **env, failure *f) {
  char libjvm[PATH_MAX], jars[PATH_MAX];
  int code = shim_find_jars(jars, f);
  if (code >= 0) {
    code = shim_find_java(wanted->java_home, jars, "/usr/lib/jvm", libjvm, f);
  }
  if (code < 0) {
    return code;
  }
  // Its other libraries find libjvm.so by name: with two of them loaded they would mix.
  static char loaded[PATH_MAX];
  if (*loaded != 0 && strcmp(loaded, libjvm) != 0) {
    return shim_fail(f, GPUNVME_ERROR_JAVA, "%s cannot be tried: this process has already loaded %s, which did not start", libjvm, loaded);
  }
  void *library = dlopen(libjvm, RTLD_NOW | RTLD_LOCAL);
  if (library == NULL) {
    return shim_fail(f, GPUNVME_ERROR_JAVA, "%s cannot be loaded: %s", libjvm, dlerror());
  }
  strcpy(loaded, libjvm);
  create_function create;
  *(void **)&create = dlsym(library, "JNI_CreateJavaVM");
  if (create == NULL) {
    return shim_fail(f, GPUNVME_ERROR_JAVA, "%s has no JNI_CreateJavaVM", libjvm);
  }
  return make(create, libjvm, jars, wanted, vm, env, f);
}

// ---- one that is there already

// The virtual machine of this process, or NULL.
static JavaVM *existing(void) {
  created_function created;
  *(void **)&created = dlsym(RTLD_DEFAULT, "JNI_GetCreatedJavaVMs");
  if (created == NULL) {
    void *library = dlopen("libjvm.so", RTLD_NOW | RTLD_NOLOAD);
    if (library == NULL) {
      return NULL;
    }
    *(void **)&created = dlsym(library, "JNI_GetCreatedJavaVMs");
    dlclose(library); // who made the virtual machine holds it
  }
  JavaVM *vm = NULL;
  jsize count = 0;
  if (created == NULL || created(&vm, 1, &count) != JNI_OK || count == 0) {
    return NULL;
  }
  return vm;
}

// Whether it has threads. One that came with a fork has none, and would let a caller wait for ever.
static int alive(void) {
  DIR *threads = opendir("/proc/self/task");
  if (threads == NULL) {
    return 1;
  }
  struct dirent *thread;
  int found = 0;
  while (!found && (thread = readdir(threads)) != NULL) {
    char path[64], name[32] = "";
    snprintf(path, sizeof path, "/proc/self/task/%.20s/comm", thread->d_name);
    FILE *comm = fopen(path, "re");
    found = comm != NULL && fgets(name, sizeof name, comm) != NULL && strcmp(name, "VM Thread\n") == 0;
    if (comm != NULL) {
      fclose(comm);
    }
  }
  closedir(threads);
  return found;
}

static int attach(JavaVM *vm, char *name, JNIEnv **env, failure *f) {
  if (!alive()) {
    return shim_fail(f, GPUNVME_ERROR_FORKED,
        "this process is a fork of one that has a virtual machine, and has none of its threads; call exec after fork, or fork earlier");
  }
  JavaVMAttachArgs arguments = {.version = JNI_VERSION_1_8, .name = name, .group = NULL};
  jint code = (*vm)->AttachCurrentThreadAsDaemon(vm, (void **)env, &arguments);
  if (code != JNI_OK) {
    return shim_fail(f, GPUNVME_ERROR_JAVA, "the virtual machine of this process does not accept this thread: %d", (int)code);
  }
  return GPUNVME_OK;
}

// Java sets SIGCHLD to its default when it prepares its class for processes, which is when the environment is first asked for: later,
// in some call of the program's. So that is done here, and the program's handler is put back at once.
static void keep_child_signal(JNIEnv *env) {
  struct sigaction before, after;
  const int known = sigaction(SIGCHLD, NULL, &before) == 0;
  jclass processes = (*env)->FindClass(env, "java/lang/ProcessImpl"); // runs its initializer
  if (known && sigaction(SIGCHLD, NULL, &after) == 0 && after.sa_handler != before.sa_handler) {
    sigaction(SIGCHLD, &before, NULL);
  }
  if (processes == NULL) {
    (*env)->ExceptionClear(env);
  } else {
    (*env)->DeleteLocalRef(env, processes);
  }
}

static JavaVM *made; // here, by a start that may have failed later

int shim_fill(table *to, const start_options *wanted, int *ours, failure *f) {
  JNIEnv *env = NULL;
  JavaVM *vm = existing();
  int code;
  if (vm != NULL) {
    code = attach(vm, "gpunvme start", &env, f);
  } else {
    code = load_and_make(wanted, &vm, &env, f);
    if (code >= 0) {
      made = vm;
    } else if ((vm = existing()) != NULL) { // another thread of the program was faster
      code = attach(vm, "gpunvme start", &env, f);
    }
  }
  if (code < 0) {
    return code;
  }
  *ours = vm == made;
  keep_child_signal(env);
  code = java_fill(env, to, f);
  (*vm)->DetachCurrentThread(vm);
  return code;
}

void shim_end(void) {
  JNIEnv *env;
  failure f; // nobody is left to read it
  if (attach(made, "gpunvme end", &env, &f) >= 0) {
    java_end(env);
    (*made)->DetachCurrentThread(made);
  }
}
