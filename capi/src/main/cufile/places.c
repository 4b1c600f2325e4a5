// Files that are storage of ours, through the C API, which is loaded with the first of them: then Java starts, and not before.
//
// GPUNVME_CUFILE_MAP=/mnt/data=vfio:0000:01:00.0#1,/mnt/more=...:rw says on which devices the files below a folder are. A file that
// begins with "gpunvme:" and an address is that device.
#include <ctype.h>
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "gpunvme.h"
#include "parts.h"

#define CUFILE_PART "places"

#define PREFIX "gpunvme:"
#define VARIABLE "GPUNVME_CUFILE_MAP"
enum { MOST_ADDRESS = 2 * PATH_MAX };

// X(name, arguments) of the C API, which all return int.
#define FUNCTIONS(X)                                                                                   \
  X(gpunvme_open, (const char *, const char *, uint32_t, gpunvme_storage **))                          \
  X(gpunvme_close, (gpunvme_storage *))                                                                \
  X(gpunvme_get_info, (gpunvme_storage *, gpunvme_info *))                                             \
  X(gpunvme_read, (gpunvme_storage *, uint64_t, uint64_t, uint64_t))                                   \
  X(gpunvme_write, (gpunvme_storage *, uint64_t, uint64_t, uint64_t))                                  \
  X(gpunvme_last_errno, (void))

static struct {
#define MEMBER(name, arguments) int(*name) arguments;
  FUNCTIONS(MEMBER)
#undef MEMBER
  const char *(*gpunvme_last_error)(void);
} api;

static pthread_once_t once = PTHREAD_ONCE_INIT;
static bool loaded; // written once
static char why_not[512];

struct place {
  struct place *next;
  gpunvme_storage *storage;
  uint64_t bytes;
  bool writes;
  int users;
  char address[];
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct place *all; // guarded by lock

typedef void *__attribute__((may_alias)) any_pointer;

static bool find(void *library, const char *name, void *to) {
  *(any_pointer *)to = dlsym(library, name);
  return *(any_pointer *)to != NULL;
}

// libgpunvme.so.0 beside this library, above it (as it is built, installed, and in a wheel), or where the system looks.
static void *open_api(void) {
  static const char *const beside[] = {"libgpunvme.so.0", "../libgpunvme.so.0", "../../libgpunvme.so.0", "../../libgpunvme.so"};
  char path[PATH_MAX], folder[PATH_MAX];
  Dl_info self;
  if (dladdr((const void *)&place_open, &self) != 0 && realpath(self.dli_fname, folder) != NULL) {
    *strrchr(folder, '/') = 0;
    for (size_t i = 0; i < COUNT(beside); i++) {
      void *library = snprintf(path, sizeof path, "%s/%s", folder, beside[i]) < (int)sizeof path && access(path, R_OK) == 0
                          ? dlopen(path, RTLD_NOW | RTLD_LOCAL)
                          : NULL;
      if (library != NULL) {
        return library;
      }
    }
  }
  return dlopen("libgpunvme.so.0", RTLD_NOW | RTLD_LOCAL);
}

static void load(void) {
  void *library = open_api();
  if (library == NULL) {
    snprintf(why_not, sizeof why_not, "%s", dlerror());
    return;
  }
  loaded = find(library, "gpunvme_last_error", &api.gpunvme_last_error);
#define FIND(name, arguments) loaded &= find(library, #name, &api.name);
  FUNCTIONS(FIND)
#undef FIND
  if (!loaded) {
    snprintf(why_not, sizeof why_not, "libgpunvme.so.0 is of another version");
  }
}

// ---- which file is on which device

bool places_are_mapped(void) {
  const char *map = secure_getenv(VARIABLE);
  return map != NULL && *map != 0;
}

// The next of the map: its folder, and its address. Entries are separated by a comma before an absolute path, since addresses have
// commas, too.
static const char *entry(const char *map, char *folder, char *address, bool *writes) {
  const char *equals = strchr(map, '=');
  const char *end = map;
  while ((end = strchr(end, ',')) != NULL && end[1] != '/') {
    end++;
  }
  end = end == NULL ? map + strlen(map) : end;
  if (map[0] != '/' || equals == NULL || equals > end || equals - map >= PATH_MAX || end - equals > PATH_MAX) {
    LOG(LOG_ERROR, VARIABLE ": no /FOLDER=ADDRESS where it says '%s'", map);
    return NULL;
  }
  size_t length = (size_t)(equals - map);
  while (length > 1 && map[length - 1] == '/') {
    length--;
  }
  memcpy(folder, map, length);
  folder[length] = 0;
  length = (size_t)(end - equals) - 1;
  memcpy(address, equals + 1, length);
  address[length] = 0;
  *writes = length > 3 && strcmp(address + length - 3, ":rw") == 0;
  if (*writes) {
    address[length - 3] = 0;
  }
  return *end == ',' ? end + 1 : end;
}

// Whether the map has the file, and the address of it: of the folders that it is below, the longest counts. The path is the kernel's,
// without symbolic links, so the folders are looked at without them, too.
static bool mapped(const char *path, char *address, bool *writes) {
  char folder[PATH_MAX], device[PATH_MAX], real[PATH_MAX];
  const char *map = secure_getenv(VARIABLE);
  size_t longest = 0;
  bool may_write;
  while (map != NULL && *map != 0 && (map = entry(map, folder, device, &may_write)) != NULL) {
    const char *below = realpath(folder, real) != NULL ? real : folder;
    const size_t length = strlen(below);
    if (length > longest && strncmp(path, below, length) == 0 && (path[length] == '/' || length == 1)) {
      longest = length;
      *writes = may_write;
      snprintf(address, MOST_ADDRESS, "%s:%s", device, path + (length == 1 ? 0 : length));
    }
  }
  return longest > 0;
}

// Whether the file is an address: the prefix, and the address behind it, in one line. Other files may begin so, too.
static bool named(int fd, char *address) {
  struct stat status;
  if (fstat(fd, &status) != 0 || !S_ISREG(status.st_mode) || status.st_size <= (off_t)strlen(PREFIX) || status.st_size >= PATH_MAX) {
    return false;
  }
  // The file may be open for writing only, or with O_DIRECT.
  char path[32], text[PATH_MAX];
  snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
  FILE *file = fopen(path, "re");
  size_t length = file == NULL ? 0 : fread(text, 1, sizeof text - 1, file);
  if (file != NULL) {
    fclose(file);
  }
  text[length] = 0;
  if (strncmp(text, PREFIX, strlen(PREFIX)) != 0) {
    return false;
  }
  while (length > 0 && (text[length - 1] == '\n' || text[length - 1] == '\r')) {
    length--;
  }
  const char *begin = text + strlen(PREFIX);
  if (strcspn(text, "\r\n") != length || length == strlen(PREFIX) || isspace((unsigned char)*begin)) {
    LOG(LOG_INFO, "file descriptor %d is read as a file: it begins with " PREFIX ", but no address in one line follows", fd);
    return false;
  }
  text[length] = 0;
  strcpy(address, begin);
  return true;
}

// ---- storage

// With the lock.
static struct place *known(const char *address, bool writes) {
  struct place *p = all;
  while (p != NULL && (strcmp(p->address, address) != 0 || p->writes != writes)) {
    p = p->next;
  }
  return p;
}

static CUfileOpError open_storage(const char *address, bool writes, struct place **opened) {
  gpunvme_info info;
  pthread_once(&once, load);
  if (!loaded) {
    LOG(LOG_ERROR, "%s cannot be opened without the C API: %s", address, why_not);
    return CU_FILE_IO_NOT_SUPPORTED;
  }
  struct place *p = calloc(1, sizeof *p + strlen(address) + 1);
  if (p == NULL) {
    return CU_FILE_NOMEM_ERROR;
  }
  if (api.gpunvme_open(address, NULL, writes ? GPUNVME_WRITE : 0, &p->storage) < 0 || api.gpunvme_get_info(p->storage, &info) < 0) {
    LOG(LOG_ERROR, "%s: %s", address, api.gpunvme_last_error());
    api.gpunvme_close(p->storage);
    free(p);
    return CU_FILE_IO_NOT_SUPPORTED;
  }
  strcpy(p->address, address);
  p->bytes = info.size;
  p->writes = writes;
  p->next = all;
  all = p;
  LOG(LOG_INFO, "%s is open, %llu bytes, for %s", address, (unsigned long long)p->bytes, writes ? "reading and writing" : "reading");
  *opened = p;
  return CU_FILE_SUCCESS;
}

CUfileOpError place_open(int fd, bool writes, struct place **found) {
  char link[32], path[PATH_MAX] = "", address[MOST_ADDRESS];
  bool may_write = true;
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  ssize_t length = readlink(link, path, sizeof path - 1);
  path[length > 0 ? length : 0] = 0;
  *found = NULL;
  if (!mapped(path, address, &may_write) && !named(fd, address)) {
    return CU_FILE_SUCCESS;
  }
  CUfileOpError code = CU_FILE_SUCCESS;
  pthread_mutex_lock(&lock);
  struct place *p = known(address, writes && may_write);
  if (p == NULL) {
    code = open_storage(address, writes && may_write, &p);
  }
  if (p != NULL) {
    p->users++;
  }
  pthread_mutex_unlock(&lock);
  // Never the file as it is here instead: its bytes may be others, and nobody would know.
  *found = p;
  return code;
}

void place_close(struct place *p) {
  pthread_mutex_lock(&lock);
  if (--p->users == 0) {
    struct place **at = &all;
    while (*at != p) {
      at = &(*at)->next;
    }
    *at = p->next;
    api.gpunvme_close(p->storage);
    free(p);
  }
  pthread_mutex_unlock(&lock);
}

// What a transfer returns for a failure of the C API.
static ssize_t failed(const struct place *p, int code) {
  LOG(LOG_ERROR, "%s: %s", p->address, api.gpunvme_last_error());
  switch (code) {
    case GPUNVME_ERROR_ACCELERATOR: return refused(CU_FILE_CUDA_DRIVER_ERROR);
    case GPUNVME_ERROR_FORKED: return refused(CU_FILE_DRIVER_NOT_INITIALIZED);
    case GPUNVME_ERROR_MEMORY: return refused(CU_FILE_NOMEM_ERROR);
    default: break;
  }
  const int error = api.gpunvme_last_errno();
  errno = error != 0                           ? error
          : code == GPUNVME_ERROR_INVALID      ? EINVAL
          : code == GPUNVME_ERROR_PERMISSION   ? EACCES
          : code == GPUNVME_ERROR_NO_SPACE     ? ENOSPC
          : code == GPUNVME_ERROR_TIMEOUT      ? ETIMEDOUT
          : code == GPUNVME_ERROR_GONE         ? ENODEV
                                               : EIO;
  return -1;
}

ssize_t place_transfer(const struct place *p, bool write, uint64_t offset, uint64_t address, size_t bytes) {
  if (write && !p->writes) {
    LOG(LOG_ERROR, "%s is open for reading only: its entry in " VARIABLE " does not end in :rw", p->address);
    errno = EROFS;
    return -1;
  }
  if (offset >= p->bytes) {
    errno = ENOSPC;
    return write ? -1 : 0;
  }
  bytes = bytes < p->bytes - offset ? bytes : (size_t)(p->bytes - offset);
  int code = (write ? api.gpunvme_write : api.gpunvme_read)(p->storage, offset, address, bytes);
  return code < 0 ? failed(p, code) : (ssize_t)bytes;
}
