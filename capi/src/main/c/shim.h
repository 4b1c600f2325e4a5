// What the files of the shim share. Nothing of it is exported.
#ifndef GPUNVME_SHIM_H
#define GPUNVME_SHIM_H

#include <limits.h>
#include <stddef.h>

#include "gpunvme.h"
#include "table.h"

#define SHIM_VERSION "0.1.0"
#define SHIM_JAVA 25 // the oldest that will do

// Exports in Java lays these out by hand.
_Static_assert(sizeof(void *) == 8, "handles and addresses are 64 bits");
_Static_assert(sizeof(failure) == 2048, "failure");
_Static_assert(sizeof(gpunvme_info) == 32, "gpunvme_info");
_Static_assert(sizeof(gpunvme_range) == 24, "gpunvme_range");
_Static_assert(sizeof(gpunvme_plan_info) == 32, "gpunvme_plan_info");
_Static_assert(sizeof(gpunvme_tensor_read) == 40, "gpunvme_tensor_read");
_Static_assert(sizeof(gpunvme_quantized) == 72, "gpunvme_quantized");
_Static_assert(sizeof(gpunvme_kernel_options) == 24, "gpunvme_kernel_options");

// ---- failure.c

// The failure of the calling thread, which gpunvme_last_error reads. It keeps what it has until something else fails.
failure *shim_failure(void);

// Fills f and returns code.
int shim_fail(failure *f, int code, const char *format, ...) __attribute__((format(printf, 3, 4)));

// ---- start.c

typedef struct start_options {
  const char *java_home; // or NULL
  const char *const *options;
  size_t count;
} start_options;

// Starts the virtual machine unless that is done; waits for whoever is at it.
int shim_start(const start_options *options, failure *f);

// The table if there is one, else NULL; starts nothing. An atomic load.
const table *shim_table(void);

// Whether this process is a fork of one that had started. An atomic load.
int shim_forked(void);

// Ends the start that is under way, whose thread does not come back, and every later one: what f says.
void shim_start_aborted(const failure *f);

// How long exit waits for all controllers together; most take less than a second. Tests make it shorter.
extern int shim_end_seconds;

// ---- jvm.c, or a double of it

// Finds or makes the virtual machine, and has it fill the table. *ours: whether it was made here, so that nobody else ends
// it. Called by one thread at a time, which is a new one each time and attached to nothing, before or after.
int shim_fill(table *to, const start_options *options, int *ours, failure *f);

// Tells the virtual machine that was made here that the process ends. Called once, by a thread as the one above.
void shim_end(void);

// ---- background.c

// Starts a program that the process has nothing to do with any more; words[0] is its path, and NULL ends them. Nobody is told if it
// cannot be. All signals but crashes are blocked.
void shim_in_background(char *const *words);

// ---- places.c

// Text that is cut where it gets too long.
typedef struct notes {
  size_t used;
  char text[1400];
} notes;

void note(notes *n, const char *format, ...) __attribute__((format(printf, 2, 3)));

// Where the Java is that is to be used: from java_home, or NULL for the usual places: the one that came with the jars, which
// packages bring, if it is there; of the others `installed` (/usr/lib/jvm) is the last. libjvm has PATH_MAX bytes.
int shim_find_java(const char *java_home, const char *jars, const char *installed, char *libjvm, failure *f);

// Whether a Java came with the jars: they are of a package, whose folder is not for what programs make.
int shim_has_own(const char *jars);

// Whether this is the Java that came with the jars. It has all that is in them, prepared for a quick start.
int shim_is_own(const char *libjvm, const char *jars);

// The folder of the jars, PATH_MAX bytes.
int shim_find_jars(char *folder, failure *f);

// The folder that has gpunvme/gpunvme.cuh, PATH_MAX bytes.
int shim_find_headers(char *folder, failure *f);

// The name, PATH_MAX bytes, of the archive of the classes in these jars, prepared for this virtual machine: another name when one
// of them changes or the folder moves, since an archive that does not fit is worse than none. That of the Java that came with
// the jars always has one name. 0 if there is no name.
int shim_archive(const char *libjvm, const char *jars, char *archive);

#endif
