// Kernels of the stand-in: those of libraries in which device code is compiled for the CPU. Without such a
// library a launch does nothing.
//
// FAKE_KERNELS  files, separated by colons; the kernel k is the object twin_k of one of them
#include <dlfcn.h>

enum { MOST_PARAMETERS = 16, STACK = 256 << 10 };

// As gpu/src/testing/c/twin.hpp has it.
struct twin {
  unsigned long parameters, sizes[MOST_PARAMETERS];
  unsigned lanes;                // threads of the grid that one thread here plays
  void *(*make)(unsigned warps); // a block
  void (*drop)(void *block);
  void (*run)(void **arguments, void *block, unsigned number, unsigned blocks, unsigned thread, unsigned threads);
};

static struct twin kernel; // One that does nothing.

// A kernel that was launched.
struct run {
  const struct twin *twin;
  void *arguments[MOST_PARAMETERS];
  unsigned blocks, threads;
  void **shared; // of each block
  int started;
  int running; // threads that are not over
};

struct runner {
  struct run *run;
  unsigned block, thread;
};

static struct run *new_run(const struct twin *twin, const unsigned *shape, void **arguments) {
  struct run *r = calloc(1, sizeof *r);
  r->twin = twin;
  r->blocks = shape[0];
  r->threads = shape[3];
  for (unsigned long i = 0; i < twin->parameters; i++) {
    r->arguments[i] = aligned_alloc(16, (twin->sizes[i] + 15) / 16 * 16);
    memcpy(r->arguments[i], arguments[i], twin->sizes[i]);
  }
  r->shared = calloc(r->blocks, sizeof *r->shared);
  for (unsigned b = 0; b < r->blocks; b++) {
    r->shared[b] = twin->make((r->threads + twin->lanes - 1) / twin->lanes);
  }
  return r;
}

static void end_run(struct run *r) {
  for (unsigned b = 0; b < r->blocks; b++) {
    r->twin->drop(r->shared[b]);
  }
  for (int i = 0; i < MOST_PARAMETERS; i++) {
    free(r->arguments[i]);
  }
  free(r->shared);
  free(r);
}

static void *play(void *argument) {
  struct runner mine = *(struct runner *)argument;
  struct run *r = mine.run;
  free(argument);
  r->twin->run(r->arguments, r->shared[mine.block], mine.block, r->blocks, mine.thread, r->threads);
  __atomic_sub_fetch(&r->running, 1, __ATOMIC_RELEASE);
  return NULL;
}

static void start_run(struct run *r) {
  pthread_attr_t small;
  pthread_attr_init(&small);
  pthread_attr_setstacksize(&small, STACK);
  pthread_attr_setdetachstate(&small, PTHREAD_CREATE_DETACHED);
  unsigned each = (r->threads + r->twin->lanes - 1) / r->twin->lanes;
  r->running = (int)(r->blocks * each);
  for (unsigned i = 0; i < r->blocks * each; i++) {
    struct runner *one = malloc(sizeof *one);
    *one = (struct runner){r, i / each, i % each * r->twin->lanes};
    pthread_t thread;
    if (pthread_create(&thread, &small, play, one) != 0) {
      abort();
    }
  }
  pthread_attr_destroy(&small);
}

static int is_over(struct run *r) {
  if (!r->started) {
    r->started = 1;
    start_run(r);
  }
  return __atomic_load_n(&r->running, __ATOMIC_ACQUIRE) == 0;
}

#ifdef FAKE_KERNELS
// Null if no library has it.
static const struct twin *find_twin(const char *name) {
  const struct twin *found = NULL;
  char symbol[128], files[4096], *rest = files;
  snprintf(symbol, sizeof symbol, "twin_%s", name);
  snprintf(files, sizeof files, "%s", FAKE_KERNELS);
  for (char *file; found == NULL && (file = strsep(&rest, ":")) != NULL;) {
    void *library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) {
      fprintf(stderr, "%s\n", dlerror());
      abort();
    }
    found = dlsym(library, symbol);
  }
  return found;
}
#endif
