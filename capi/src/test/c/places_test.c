// Where a Java and the jars are looked for, in a temporary folder.
#include <sys/stat.h>
#include <unistd.h>

#include "check.h"
#include "shim.h"

static char root[PATH_MAX / 4];

static const char *at(const char *relative) {
  static char paths[8][PATH_MAX];
  static int next;
  char *path = paths[next++ % 8];
  snprintf(path, PATH_MAX, "%s/%s", root, relative);
  return path;
}

static void folder(const char *relative) {
  char path[PATH_MAX];
  snprintf(path, sizeof path, "%s", at(relative));
  for (char *slash = path + strlen(root) + 1; (slash = strchr(slash, '/')) != NULL; slash++) {
    *slash = 0;
    mkdir(path, 0755);
    *slash = '/';
  }
  mkdir(path, 0755);
}

static void file(const char *relative, const char *text) {
  FILE *out = fopen(at(relative), "w");
  EXPECT(out != NULL && fputs(text, out) >= 0);
  fclose(out);
}

// A home of a Java of this version; of one that was deleted by half if it has no libjvm.
static void java(const char *home, const char *version, int libjvm) {
  char path[PATH_MAX / 8], text[100];
  snprintf(path, sizeof path, "%s/lib/server", home);
  folder(path);
  snprintf(path, sizeof path, "%s/bin", home);
  folder(path);
  snprintf(path, sizeof path, "%s/release", home);
  snprintf(text, sizeof text, "IMPLEMENTOR=\"x\"\nJAVA_VERSION=\"%s\"\n", version);
  file(path, text);
  snprintf(path, sizeof path, "%s/bin/java", home);
  file(path, "");
  chmod(at(path), 0755);
  if (libjvm) {
    snprintf(path, sizeof path, "%s/lib/server/libjvm.so", home);
    file(path, "");
  }
}

static void alone(void) {
  unsetenv("GPUNVME_JAVA_HOME");
  unsetenv("JAVA_HOME");
  unsetenv("GPUNVME_HOME");
  setenv("PATH", at("nothing"), 1);
}

static char found[PATH_MAX];

static int find_java(const char *java_home, const char *installed) {
  *found = 0;
  return shim_find_java(java_home, at("jars"), at(installed), found, shim_failure());
}

#define EXPECT_FOUND(home) EXPECT(strcmp(found, at(home "/lib/server/libjvm.so")) == 0)

static void a_java_that_is_named_is_that_one(void) {
  alone();
  java("a/java-25", "25.0.3", 1);
  java("a/java-17", "17.0.15", 1);
  java("a/broken-26", "26", 0);
  EXPECT_CODE(GPUNVME_OK, find_java(at("a/java-25"), "a"));
  EXPECT_FOUND("a/java-25");
  EXPECT_CODE(GPUNVME_ERROR_JAVA, find_java(at("a/java-17"), "a"));
  EXPECT_ERROR("a/java-17 is Java 17");
  EXPECT_CODE(GPUNVME_ERROR_JAVA, find_java(at("a/broken-26"), "a"));
  EXPECT_ERROR("has no lib/server/libjvm.so");
  EXPECT_CODE(GPUNVME_ERROR_JAVA, find_java(at("a/none"), "a"));
  EXPECT_ERROR("no file 'release'");
  setenv("GPUNVME_JAVA_HOME", at("a/java-17"), 1);
  EXPECT_CODE(GPUNVME_ERROR_JAVA, find_java(NULL, "a"));
  EXPECT_ERROR("GPUNVME_JAVA_HOME");
  EXPECT_CODE(GPUNVME_OK, find_java(at("a/java-25"), "a"));
}

static void others_are_tried_in_their_order(void) {
  alone();
  java("b/home", "26.0.1", 1);
  java("b/path", "25", 1);
  java("b/installed/one", "25.0.9", 1);
  folder("b/links");
  EXPECT(symlink(at("b/path/bin/java"), at("b/links/java")) == 0);
  setenv("JAVA_HOME", at("b/home"), 1);
  setenv("PATH", at("b/links"), 1);
  EXPECT_CODE(GPUNVME_OK, find_java(NULL, "b/installed"));
  EXPECT_FOUND("b/home");
  java("b/home", "21.0.1", 1);
  EXPECT_CODE(GPUNVME_OK, find_java(NULL, "b/installed"));
  EXPECT_FOUND("b/path");
  java("b/path", "1.8.0_392", 1);
  EXPECT_CODE(GPUNVME_OK, find_java(NULL, "b/installed"));
  EXPECT_FOUND("b/installed/one");
  java("b/installed/one", "24", 1);
  EXPECT_CODE(GPUNVME_ERROR_JAVA, find_java(NULL, "b/installed"));
  EXPECT_ERROR("GPUNVME_JAVA_HOME: not set; JAVA_HOME: ");
  EXPECT_ERROR("is Java 21; java on PATH: ");
  EXPECT_ERROR("is Java 1; ");
  EXPECT_ERROR("none that is new enough");
  EXPECT_CODE(GPUNVME_ERROR_JAVA, find_java(NULL, "b/nowhere"));
  EXPECT_ERROR("No such file or directory");
}

static void the_newest_is_taken(void) {
  alone();
  java("c/a-25", "25.0.10", 1);
  java("c/b-25", "25.0.9", 1);
  java("c/c-26", "26.1", 0);
  java("c/d-9", "9.0.4", 1);
  file("c/note", "");
  EXPECT_CODE(GPUNVME_OK, find_java(NULL, "c"));
  EXPECT_FOUND("c/a-25");
  java("c/c-26", "26.1", 1);
  EXPECT_CODE(GPUNVME_OK, find_java(NULL, "c"));
  EXPECT_FOUND("c/c-26");
}

static void what_cannot_be_is_no_java(void) {
  char path[2 * PATH_MAX], release[3000];
  alone();
  memset(path, 'x', sizeof path - 1);
  path[sizeof path - 1] = 0;
  EXPECT_CODE(GPUNVME_ERROR_JAVA, find_java(path, "none"));
  setenv("PATH", path, 1);
  setenv("JAVA_HOME", path, 1);
  EXPECT_CODE(GPUNVME_ERROR_JAVA, find_java(NULL, "none"));
  EXPECT(strlen(gpunvme_last_error()) < sizeof(failure));
  java("d/long", "25", 1);
  memset(release, 'y', sizeof release - 1);
  release[sizeof release - 1] = 0;
  file("d/long/release", release);
  EXPECT_CODE(GPUNVME_ERROR_JAVA, find_java(at("d/long"), "none"));
  java("d/long", "99999999999999999999", 1);
  find_java(at("d/long"), "none");
  EXPECT_CODE(GPUNVME_ERROR_JAVA, find_java("", "none"));
}

static void the_java_that_came_with_the_jars_is_taken_unless_one_is_named(void) {
  alone();
  java("f/java-25", "25.0.3", 1);
  java("f/usual-26", "26", 1);
  java("jars/runtime", "25.0.1", 1);
  setenv("JAVA_HOME", at("f/usual-26"), 1);
  EXPECT_CODE(GPUNVME_OK, find_java(NULL, "f"));
  EXPECT_FOUND("jars/runtime");
  EXPECT(shim_is_own(found, at("jars")) && !shim_is_own(found, at("f")));
  EXPECT(shim_has_own(at("jars")) && !shim_has_own(at("f")));
  EXPECT_CODE(GPUNVME_OK, find_java(at("f/java-25"), "f"));
  EXPECT_FOUND("f/java-25");
  EXPECT(!shim_is_own(found, at("jars")));
  setenv("GPUNVME_JAVA_HOME", at("f/java-25"), 1);
  EXPECT_CODE(GPUNVME_OK, find_java(NULL, "f"));
  EXPECT_FOUND("f/java-25");
  unsetenv("GPUNVME_JAVA_HOME");
  unlink(at("jars/runtime/lib/server/libjvm.so"));
  EXPECT_CODE(GPUNVME_ERROR_JAVA, find_java(NULL, "f"));
  EXPECT_ERROR("its own");
}

static void jars_are_where_they_are_said_to_be(void) {
  char jars[PATH_MAX];
  alone();
  folder("e/app");
  folder("e/a:b");
  setenv("GPUNVME_HOME", at("e/app"), 1);
  EXPECT_CODE(GPUNVME_ERROR_JAVA, shim_find_jars(jars, shim_failure()));
  EXPECT_ERROR("no gpunvme-capi*.jar in GPUNVME_HOME");
  file("e/app/gpunvme-capi.txt", "");
  EXPECT_CODE(GPUNVME_ERROR_JAVA, shim_find_jars(jars, shim_failure()));
  file("e/app/gpunvme-capi-0.1.0.jar", "");
  EXPECT_CODE(GPUNVME_OK, shim_find_jars(jars, shim_failure()));
  EXPECT(strcmp(jars, at("e/app")) == 0);
  file("e/a:b/gpunvme-capi.jar", "");
  setenv("GPUNVME_HOME", at("e/a:b"), 1);
  EXPECT_CODE(GPUNVME_ERROR_JAVA, shim_find_jars(jars, shim_failure()));
  EXPECT_ERROR("colon");
}

// Beside this program, since the shim is part of it.
static void jars_are_found_beside_the_library(void) {
  char jars[PATH_MAX], self[PATH_MAX / 2] = {0}, path[PATH_MAX];
  static const char *const places[] = {"lib/gpunvme", "app"}; // the second comes first where both are
  alone();
  EXPECT(readlink("/proc/self/exe", self, sizeof self - 1) > 0);
  *strrchr(self, '/') = 0;
  EXPECT_CODE(GPUNVME_ERROR_JAVA, shim_find_jars(jars, shim_failure()));
  EXPECT_ERROR("set GPUNVME_HOME");
  snprintf(path, sizeof path, "%s/lib", self);
  EXPECT(mkdir(path, 0755) == 0);
  for (int i = 0; i < 2; i++) {
    snprintf(path, sizeof path, "%s/%s", self, places[i]);
    EXPECT(mkdir(path, 0755) == 0);
    snprintf(path, sizeof path, "%s/%s/gpunvme-capi.jar", self, places[i]);
    FILE *jar = fopen(path, "w");
    EXPECT(jar != NULL);
    fclose(jar);
    EXPECT_CODE(GPUNVME_OK, shim_find_jars(jars, shim_failure()));
    snprintf(path, sizeof path, "%s/%s", self, places[i]);
    EXPECT(strcmp(jars, path) == 0);
  }
}

static void headers_are_found_beside_the_library(void) {
  char headers[PATH_MAX], self[PATH_MAX / 2] = {0}, path[PATH_MAX];
  static const char *const parts[] = {"include", "include/gpunvme"};
  EXPECT(readlink("/proc/self/exe", self, sizeof self - 1) > 0);
  *strrchr(self, '/') = 0;
  for (int i = 0; i < 2; i++) {
    EXPECT_CODE(GPUNVME_ERROR_NOT_FOUND, shim_find_headers(headers, shim_failure()));
    EXPECT_ERROR(self);
    EXPECT(gpunvme_last_errno() == 0);
    snprintf(path, sizeof path, "%s/%s", self, parts[i]);
    EXPECT(mkdir(path, 0755) == 0);
  }
  snprintf(path, sizeof path, "%s/include/gpunvme/gpunvme.cuh", self);
  FILE *header = fopen(path, "w");
  EXPECT(header != NULL);
  fclose(header);
  EXPECT_CODE(GPUNVME_OK, shim_find_headers(headers, shim_failure()));
  snprintf(path, sizeof path, "%s/include", self);
  EXPECT(strcmp(headers, path) == 0);
}

static void notes_are_cut(void) {
  notes n = {0};
  for (int i = 0; i < 1000; i++) {
    note(&n, "%d and more; ", i);
  }
  EXPECT(n.used == sizeof n.text - 1 && strlen(n.text) == n.used);
}

// Its argument is an empty folder.
int main(int count, char **arguments) {
  if (count != 2 || realpath(arguments[1], root) == NULL) {
    return 2;
  }
  RUN(a_java_that_is_named_is_that_one);
  RUN(others_are_tried_in_their_order);
  RUN(the_newest_is_taken);
  RUN(what_cannot_be_is_no_java);
  RUN(the_java_that_came_with_the_jars_is_taken_unless_one_is_named);
  RUN(jars_are_where_they_are_said_to_be);
  RUN(jars_are_found_beside_the_library);
  RUN(headers_are_found_beside_the_library);
  RUN(notes_are_cut);
  return check_failed_tests != 0;
}
