// The library as it was built, from outside: it is loaded and unloaded, its storage starts Java, and the program stays as it was.
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/auxv.h>
#include <sys/stat.h>

#include "check.h"
#include "cufile_abi.h"

#define MIB ((size_t)1 << 20)

static const char *library, *folder;

// X(result, name, arguments): what these tests call.
#define FUNCTIONS(X)                                                              \
  X(CUfileError_t, cuFileHandleRegister, (CUfileHandle_t *, CUfileDescr_t *))     \
  X(void, cuFileHandleDeregister, (CUfileHandle_t))                               \
  X(ssize_t, cuFileRead, (CUfileHandle_t, void *, size_t, off_t, off_t))          \
  X(ssize_t, cuFileWrite, (CUfileHandle_t, const void *, size_t, off_t, off_t))   \
  X(CUfileError_t, cuFileDriverClose_v2, (void))                                  \
  X(CUfileError_t, cuFileBatchIOSetUp, (CUfileBatchHandle_t *, unsigned))         \
  X(CUfileError_t, cuFileBatchIOSubmit, (CUfileBatchHandle_t, unsigned, CUfileIOParams_t *, unsigned))                            \
  X(CUfileError_t, cuFileBatchIOGetStatus, (CUfileBatchHandle_t, unsigned, unsigned *, CUfileIOEvents_t *, struct timespec *))    \
  X(void, cuFileBatchIODestroy, (CUfileBatchHandle_t))                            \
  X(const char *, gpunvme_cufile_version, (void))

static struct {
#define MEMBER(result, name, arguments) result(*name) arguments;
  FUNCTIONS(MEMBER)
#undef MEMBER
} cu;

static void *load(void) {
  void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
  if (handle == NULL) {
    printf("%s\n", dlerror());
    exit(2);
  }
#define FIND(result, name, arguments) *(void **)&cu.name = dlsym(handle, #name);
  FUNCTIONS(FIND)
#undef FIND
  return handle;
}

static CUfileHandle_t open_handle(const char *name, int flags, CUfileOpError expected) {
  char path[4096];
  CUfileHandle_t fh = NULL;
  snprintf(path, sizeof path, "%s/%s", folder, name);
  CUfileDescr_t d = {.type = CU_FILE_HANDLE_TYPE_OPAQUE_FD, .handle.fd = open(path, flags | O_CLOEXEC)};
  EXPECT(d.handle.fd >= 0);
  CUfileError_t status = cu.cuFileHandleRegister(&fh, &d);
  if (status.err != expected) {
    printf("  %s: %d, not %d\n", name, status.err, expected);
    check_failures++;
  }
  return fh;
}

static void loaded_ten_times(void) {
  unsigned char bytes[100];
  for (int i = 0; i < 10; i++) {
    void *handle = load();
    CUfileHandle_t fh = open_handle("plain", O_RDONLY, CU_FILE_SUCCESS);
    EXPECT(cu.cuFileRead(fh, bytes, sizeof bytes, 0, 0) == sizeof bytes && bytes[99] == 'x');
    cu.cuFileHandleDeregister(fh);
    EXPECT(cu.cuFileDriverClose_v2().err == CU_FILE_SUCCESS);
    EXPECT(dlclose(handle) == 0);
  }
  load();
  EXPECT(strchr(cu.gpunvme_cufile_version(), '.') != NULL);
}

// By threads of the library.
static void a_batch(CUfileHandle_t fh, unsigned char *memory, const unsigned char *expected) {
  enum { PARTS = 16 };
  CUfileIOParams_t params[PARTS];
  CUfileIOEvents_t events[PARTS];
  CUfileBatchHandle_t id;
  unsigned nr = PARTS;
  const size_t bytes = MIB / PARTS;
  memset(memory, 0, MIB);
  for (int i = 0; i < PARTS; i++) {
    params[i] = (CUfileIOParams_t){.mode = CUFILE_BATCH, .fh = fh, .opcode = CUFILE_READ};
    params[i].u.batch.devPtr_base = memory;
    params[i].u.batch.file_offset = params[i].u.batch.devPtr_offset = (off_t)(i * bytes);
    params[i].u.batch.size = bytes;
  }
  EXPECT(cu.cuFileBatchIOSetUp(&id, PARTS).err == CU_FILE_SUCCESS);
  EXPECT(cu.cuFileBatchIOSubmit(id, PARTS, params, 0).err == CU_FILE_SUCCESS);
  EXPECT(cu.cuFileBatchIOGetStatus(id, PARTS, &nr, events, NULL).err == CU_FILE_SUCCESS && nr == PARTS);
  for (unsigned i = 0; i < nr; i++) {
    EXPECT(events[i].status == CUFILE_COMPLETE && events[i].ret == bytes);
  }
  EXPECT(memcmp(memory, expected, MIB) == 0);
  cu.cuFileBatchIODestroy(id);
}

static void handler(int signal) {
  (void)signal;
}

// A file that begins with gpunvme: is the device that it names. Java starts, and takes none of the program's signals.
static void an_address_file(void) {
  static const int signals[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGCHLD, SIGALRM};
  struct sigaction wanted = {.sa_handler = handler}, is;
  unsigned char *memory = calloc(1, 2 * MIB), *other = calloc(1, 2 * MIB);
  for (size_t i = 0; i < sizeof signals / sizeof *signals; i++) {
    sigaction(signals[i], &wanted, NULL);
  }
  CUfileHandle_t fh = open_handle("address", O_RDWR, CU_FILE_SUCCESS);
  for (size_t i = 0; i < sizeof signals / sizeof *signals; i++) {
    EXPECT(sigaction(signals[i], NULL, &is) == 0); if (is.sa_handler != handler) { printf("  signal %d is taken\n", signals[i]); check_failures++; }
  }
  memset(memory, 7, MIB);
  EXPECT(cu.cuFileWrite(fh, memory, MIB - 1, 777, 1) == (ssize_t)MIB - 1);
  EXPECT(cu.cuFileRead(fh, other, MIB, 777, 3) == (ssize_t)MIB);
  EXPECT(memcmp(other + 3, memory, MIB - 1) == 0 && other[MIB + 2] == 0);
  EXPECT(cu.cuFileRead(fh, other, MIB, 0, 0) == (ssize_t)MIB);
  a_batch(fh, memory, other);
  EXPECT(cu.cuFileRead(fh, other, MIB, 64 * MIB - 10, 0) == 10);
  EXPECT(cu.cuFileRead(fh, other, MIB, 64 * MIB, 0) == 0);
  EXPECT(cu.cuFileWrite(fh, other, 10, 64 * MIB, 0) == -1 && errno == ENOSPC);
  cu.cuFileHandleDeregister(fh);
  fh = open_handle("address", O_RDONLY, CU_FILE_SUCCESS);
  EXPECT(cu.cuFileWrite(fh, memory, 10, 0, 0) == -1 && errno == EBADF);
  cu.cuFileHandleDeregister(fh);
  open_handle("nonsense", O_RDONLY, CU_FILE_IO_NOT_SUPPORTED);
  free(memory);
  free(other);
}

// A file below a folder of GPUNVME_CUFILE_MAP is read from the device that has it: the one here says otherwise.
static void a_mapped_file(void) {
  static char here[5000], there[5000];
  CUfileHandle_t fh = open_handle("mapped/deep/file", O_RDWR, CU_FILE_SUCCESS);
  memset(there, 't', sizeof there);
  EXPECT(cu.cuFileRead(fh, here, 4999, 1, 1) == 4999 && memcmp(here + 1, there + 1, 4999) == 0);
  EXPECT(cu.cuFileWrite(fh, here, 10, 0, 0) == -1 && errno == EROFS);
  cu.cuFileHandleDeregister(fh);
  fh = open_handle("plain", O_RDONLY, CU_FILE_SUCCESS);
  EXPECT(cu.cuFileRead(fh, here, 1, 0, 0) == 1 && here[0] == 'x');
  cu.cuFileHandleDeregister(fh);
  // It is not on the device, and what it has here is not taken for it.
  open_handle("mapped/alone", O_RDONLY, CU_FILE_IO_NOT_SUPPORTED);
}

// The bytes of a file are all this one, or it has none.
static void is_filled_with(const char *name, char byte) {
  static char here[5000], wanted[5000];
  memset(wanted, byte, sizeof wanted);
  memset(here, 0, sizeof here);
  CUfileHandle_t fh = open_handle(name, O_RDONLY, CU_FILE_SUCCESS);
  EXPECT(cu.cuFileRead(fh, here, sizeof here, 0, 0) == sizeof here);
  if (memcmp(here, wanted, sizeof here) != 0) {
    printf("  %s: %c, not %c\n", name, here[0], byte);
    check_failures++;
  }
  cu.cuFileHandleDeregister(fh);
}

// Of two folders of the map that a file is below, the longer one counts, whichever is first.
static void the_longest_folder_counts(void) {
  is_filled_with("mapped/more/file", 'm');
  is_filled_with("mapped/deep/file", 't');
  is_filled_with("mapped-not/deep/file", 'h');
}

// The kernel tells paths without symbolic links, and people name folders by them.
static void a_folder_may_be_a_symbolic_link(void) {
  is_filled_with("link/deep/file", 't');
  is_filled_with("linked/deep/file", 't');
}

// They begin as an address file does.
static void ordinary_files_stay_what_they_are(void) {
  static const char *const names[] = {"lines", "note", "zero"};
  char byte;
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    CUfileHandle_t fh = open_handle(names[i], O_RDONLY, CU_FILE_SUCCESS);
    EXPECT(cu.cuFileRead(fh, &byte, 1, 0, 0) == 1 && byte == 'g');
    cu.cuFileHandleDeregister(fh);
  }
}

// In a program with rights that whoever starts it has not, by set-group-ID.
static int takes_no_variables(void) {
  if (getauxval(AT_SECURE) == 0) {
    return 0; // mounted with nosuid
  }
  load();
  CUfileHandle_t fh = open_handle("mapped/deep/file", O_RDONLY, CU_FILE_SUCCESS);
  char byte = 0;
  EXPECT(cu.cuFileRead(fh, &byte, 1, 0, 0) == 1 && byte == 'h');
  return check_failures;
}

static void a_program_of_more_rights_takes_no_variables(void) {
  char own[4096], copy[4096], log[4096], command[9000];
  ssize_t length = readlink("/proc/self/exe", own, sizeof own - 1);
  EXPECT(length > 0);
  own[length > 0 ? length : 0] = 0;
  snprintf(copy, sizeof copy, "%s/secure", folder);
  snprintf(log, sizeof log, "%s/secure.log", folder);
  snprintf(command, sizeof command, "cp '%s' '%s'", own, copy);
  if (geteuid() != 0) {
    return; // others may not make such a program
  }
  EXPECT(system(command) == 0 && chown(copy, 0, 65534) == 0 && chmod(copy, 02755) == 0);
  snprintf(command, sizeof command, "CUFILE_LOGFILE_PATH='%s' CUFILE_LOGGING_LEVEL=TRACE '%s' secure '%s' '%s'", log, copy, library, folder);
  EXPECT(system(command) == 0);
  EXPECT(access(log, F_OK) != 0);
}

int main(int count, char **arguments) {
  if (count == 4 && strcmp(arguments[1], "secure") == 0) {
    library = arguments[2];
    folder = arguments[3];
    return takes_no_variables();
  }
  if (count != 3) {
    fprintf(stderr, "usage: %s LIBRARY FOLDER\n", arguments[0]);
    return 2;
  }
  library = arguments[1];
  folder = arguments[2];
  RUN(loaded_ten_times);
  RUN(an_address_file);
  RUN(a_mapped_file);
  RUN(the_longest_folder_counts);
  RUN(a_folder_may_be_a_symbolic_link);
  RUN(ordinary_files_stay_what_they_are);
  RUN(a_program_of_more_rights_takes_no_variables);
  return check_failed_tests > 0;
}
