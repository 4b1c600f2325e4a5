// Where a Java is, and where our jars are.
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "shim.h"

#define LIBJVM "/lib/server/libjvm.so"
#define OWN "/runtime" // in the folder of the jars

void note(notes *n, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  int written = vsnprintf(n->text + n->used, sizeof n->text - n->used, format, arguments);
  va_end(arguments);
  if (written > 0) {
    size_t more = (size_t)written;
    size_t room = sizeof n->text - 1 - n->used;
    n->used += more < room ? more : room;
  }
}

// 25.0.3 as a number that sorts; 0 if the file is not there or does not say.
static uint64_t version_of(const char *home) {
  char path[PATH_MAX], line[512];
  uint64_t version = 0;
  if (snprintf(path, sizeof path, "%s/release", home) >= (int)sizeof path) {
    return 0;
  }
  FILE *release = fopen(path, "re");
  if (release == NULL) {
    return 0;
  }
  while (version == 0 && fgets(line, sizeof line, release) != NULL) {
    unsigned parts[3] = {0};
    if (sscanf(line, "JAVA_VERSION=\"%5u.%5u.%5u", &parts[0], &parts[1], &parts[2]) >= 1) {
      version = (uint64_t)parts[0] << 40 | (uint64_t)parts[1] << 20 | parts[2];
    }
  }
  fclose(release);
  return version;
}

static unsigned major(uint64_t version) {
  return (unsigned)(version >> 40);
}

// Whether this home will do; notes why not.
static int usable(const char *label, const char *home, char *libjvm, notes *why) {
  uint64_t version = version_of(home);
  if (version == 0) {
    note(why, "%s: %s has no file 'release' of a Java; ", label, home);
    return 0;
  }
  if (major(version) < SHIM_JAVA) {
    note(why, "%s: %s is Java %u; ", label, home, major(version));
    return 0;
  }
  if (snprintf(libjvm, PATH_MAX, "%s%s", home, LIBJVM) >= PATH_MAX || access(libjvm, R_OK) != 0) {
    note(why, "%s: %s has no %s; ", label, home, LIBJVM + 1);
    return 0;
  }
  return 1;
}

// The home of `java` on PATH, links followed; 0 if there is none.
static int java_on_path(char *home) {
  static const char tail[] = "/bin/java";
  const char *at = getenv("PATH");
  while (at != NULL && *at != 0) {
    size_t length = strcspn(at, ":");
    char candidate[PATH_MAX];
    int needed = snprintf(candidate, sizeof candidate, "%.*s/java", (int)length, at);
    if (length > 0 && needed < (int)sizeof candidate && access(candidate, X_OK) == 0 && realpath(candidate, home) != NULL) {
      size_t end = strlen(home);
      if (end > strlen(tail) && strcmp(home + end - strlen(tail), tail) == 0) {
        home[end - strlen(tail)] = 0;
      }
      return 1;
    }
    at += length;
    at += *at == ':';
  }
  return 0;
}

// The newest in a folder of Javas; 0 if none will do.
static int newest_in(const char *folder, char *libjvm, notes *why) {
  DIR *entries = opendir(folder);
  if (entries == NULL) {
    note(why, "%s: %s; ", folder, strerror(errno));
    return 0;
  }
  uint64_t best = 0;
  int some = 0;
  struct dirent *entry;
  while ((entry = readdir(entries)) != NULL) {
    char home[PATH_MAX], library[PATH_MAX];
    if (entry->d_name[0] == '.' || snprintf(home, sizeof home, "%s/%s", folder, entry->d_name) >= (int)sizeof home) {
      continue;
    }
    uint64_t version = version_of(home);
    some |= version != 0;
    notes ignored = {0};
    if (version > best && usable("", home, library, &ignored)) {
      best = version;
      strcpy(libjvm, library);
    }
  }
  closedir(entries);
  if (best == 0) {
    note(why, some ? "%s: none that is new enough; " : "%s: none; ", folder);
  }
  return best != 0;
}

static int none(const char *where, const notes *why, failure *f) {
  return shim_fail(f, GPUNVME_ERROR_JAVA,
      "no Java %d or newer %s: %sinstall one (https://adoptium.net/temurin/releases/?version=%d), or name its folder in "
      "GPUNVME_JAVA_HOME or gpunvme_start",
      SHIM_JAVA, where, why->text, SHIM_JAVA);
}

// Where the Java is that came with the jars. False if none did.
static int own_home(const char *jars, char *home) {
  return snprintf(home, PATH_MAX, "%s" OWN, jars) < PATH_MAX && access(home, F_OK) == 0;
}

int shim_has_own(const char *jars) {
  char home[PATH_MAX];
  return own_home(jars, home);
}

int shim_is_own(const char *libjvm, const char *jars) {
  size_t length = strlen(jars);
  return strncmp(libjvm, jars, length) == 0 && strcmp(libjvm + length, OWN LIBJVM) == 0;
}

int shim_find_java(const char *java_home, const char *jars, const char *installed, char *libjvm, failure *f) {
  notes why = {0};
  char home[PATH_MAX];
  if (java_home != NULL) {
    return usable("java_home", java_home, libjvm, &why) ? GPUNVME_OK : none("where gpunvme_start was told", &why, f);
  }
  // Who names a place wants that one: another would hide that it is wrong. JAVA_HOME is often set for something else.
  const char *ours = getenv("GPUNVME_JAVA_HOME");
  if (ours != NULL && *ours != 0) {
    return usable("GPUNVME_JAVA_HOME", ours, libjvm, &why) ? GPUNVME_OK : none("in GPUNVME_JAVA_HOME", &why, f);
  }
  note(&why, "GPUNVME_JAVA_HOME: not set; ");
  if (own_home(jars, home)) {
    // One that is not whole must not hide behind another: its start would be slower, and nobody would know why.
    return usable("its own", home, libjvm, &why) ? GPUNVME_OK : none("beside the jars", &why, f);
  }
  const char *usual = getenv("JAVA_HOME");
  if (usual == NULL || *usual == 0) {
    note(&why, "JAVA_HOME: not set; ");
  } else if (usable("JAVA_HOME", usual, libjvm, &why)) {
    return GPUNVME_OK;
  }
  if (!java_on_path(home)) {
    note(&why, "PATH: no java; ");
  } else if (usable("java on PATH", home, libjvm, &why)) {
    return GPUNVME_OK;
  }
  return newest_in(installed, libjvm, &why) ? GPUNVME_OK : none("was found", &why, f);
}

// Whether our own jar is there.
static int has_jars(const char *folder) {
  static const char jar[] = "gpunvme-capi";
  DIR *entries = opendir(folder);
  struct dirent *entry;
  int found = 0;
  while (entries != NULL && !found && (entry = readdir(entries)) != NULL) {
    size_t length = strlen(entry->d_name);
    found = strncmp(entry->d_name, jar, strlen(jar)) == 0 && length > 4 && strcmp(entry->d_name + length - 4, ".jar") == 0;
  }
  if (entries != NULL) {
    closedir(entries);
  }
  return found;
}

static int checked(const char *folder, failure *f) {
  if (strchr(folder, ':') != NULL) {
    return shim_fail(f, GPUNVME_ERROR_JAVA, "the folder of the jars has a colon in its name, so Java reads it as two folders: %s", folder);
  }
  return GPUNVME_OK;
}

// The folder of this library, PATH_MAX bytes. False if it is unknown.
static int own_folder(char *folder) {
  Dl_info self;
  if (dladdr((const void *)&shim_forked, &self) == 0 || realpath(self.dli_fname, folder) == NULL) {
    return 0;
  }
  *strrchr(folder, '/') = 0;
  return 1;
}

int shim_find_jars(char *folder, failure *f) {
  const char *home = getenv("GPUNVME_HOME");
  if (home != NULL && *home != 0) {
    if (snprintf(folder, PATH_MAX, "%s", home) >= PATH_MAX || !has_jars(folder)) {
      return shim_fail(f, GPUNVME_ERROR_JAVA, "no gpunvme-capi*.jar in GPUNVME_HOME, which is %s", home);
    }
    return checked(folder, f);
  }
  // As built, as installed, and as moved together with what it was installed with.
  static const char *const beside[] = {"app", "lib/gpunvme", "gpunvme", "../lib/gpunvme"};
  char library[PATH_MAX];
  if (!own_folder(library)) {
    return shim_fail(f, GPUNVME_ERROR_JAVA, "the folder of libgpunvme.so is unknown, so its jars cannot be found; set GPUNVME_HOME to their folder");
  }
  for (size_t i = 0; i < sizeof beside / sizeof *beside; i++) {
    if (snprintf(folder, PATH_MAX, "%s/%s", library, beside[i]) < PATH_MAX && has_jars(folder)) {
      return checked(folder, f);
    }
  }
  return shim_fail(f, GPUNVME_ERROR_JAVA,
      "no gpunvme-capi*.jar in app, lib/gpunvme, gpunvme or ../lib/gpunvme next to %s/libgpunvme.so; set GPUNVME_HOME to the folder of the "
      "jars",
      library);
}

int shim_find_headers(char *folder, failure *f) {
  // As installed, as in a wheel, and as built.
  static const char *const places[] = {"../include", "include", "../../gpu/src/main/cuda"};
  char library[PATH_MAX], candidate[PATH_MAX], header[PATH_MAX];
  if (!own_folder(library)) {
    return shim_fail(f, GPUNVME_ERROR_NOT_FOUND, "the folder of libgpunvme.so is unknown, so the headers of the device library cannot be found");
  }
  for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
    if (snprintf(candidate, sizeof candidate, "%s/%s", library, places[i]) < PATH_MAX &&
        snprintf(header, sizeof header, "%s/gpunvme/gpunvme.cuh", candidate) < PATH_MAX && access(header, R_OK) == 0 &&
        realpath(candidate, folder) != NULL) {
      return GPUNVME_OK;
    }
  }
  return shim_fail(f, GPUNVME_ERROR_NOT_FOUND,
      "no gpunvme/gpunvme.cuh in ../include, include or ../../gpu/src/main/cuda of %s, the folder of libgpunvme.so: install both together",
      library);
}

// FNV-1a, http://www.isthe.com/chongo/tech/comp/fnv
static uint64_t hash(uint64_t h, const char *text) {
  for (; *text != 0; text++) {
    h = (h ^ (unsigned char)*text) * 0x100000001b3u;
  }
  return h;
}

// Of a name and a file's size and time of change; 0 if there is no such file.
static uint64_t fingerprint(const char *name, const char *path) {
  char text[96];
  struct stat status;
  if (stat(path, &status) != 0) {
    return 0;
  }
  snprintf(text, sizeof text, " %lld %lld.%09ld", (long long)status.st_size, (long long)status.st_mtim.tv_sec, status.st_mtim.tv_nsec);
  return hash(hash(0xcbf29ce484222325u, name), text);
}

int shim_archive(const char *libjvm, const char *jars, char *archive) {
  if (shim_is_own(libjvm, jars)) {
    return snprintf(archive, PATH_MAX, "%s" OWN "/lib/server/gpunvme-capi.jsa", jars) < PATH_MAX;
  }
  // A sum: folders have no order.
  uint64_t sum = fingerprint(jars, libjvm);
  DIR *entries = opendir(jars);
  struct dirent *entry;
  while (entries != NULL && (entry = readdir(entries)) != NULL) {
    char path[PATH_MAX];
    size_t length = strlen(entry->d_name);
    if (length > 4 && strcmp(entry->d_name + length - 4, ".jar") == 0 &&
        snprintf(path, sizeof path, "%s/%s", jars, entry->d_name) < (int)sizeof path) {
      sum += fingerprint(entry->d_name, path);
    }
  }
  if (entries != NULL) {
    closedir(entries);
  }
  return snprintf(archive, PATH_MAX, "%s/gpunvme-%016" PRIx64 ".jsa", jars, sum) < PATH_MAX;
}
