// Threads, made when there is work for one more. They end when the driver is closed.
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include "parts.h"

#define CUFILE_PART "workers"

enum { MOST_WORKERS = 32, USUAL_WORKERS = 8 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static task *first, **last = &first; // guarded by lock
static pthread_t threads[MOST_WORKERS];
static int alive, idle; // guarded by lock
static bool ending;     // guarded by lock
static atomic_uint posted;
static atomic_int looking; // threads that look for work without the lock, and come to it soon

static int processors(void) {
  static atomic_int cores;
  int known = atomic_load_explicit(&cores, memory_order_relaxed);
  if (known == 0) {
    known = (int)sysconf(_SC_NPROCESSORS_ONLN);
    known = known < 1 ? 1 : known;
    atomic_store_explicit(&cores, known, memory_order_relaxed);
  }
  return known;
}

int workers_limit(void) {
  const int known = processors();
  size_t wanted = setting_size(CUFILE_PARAM_EXECUTION_MAX_IO_THREADS);
  return wanted > 0 ? (int)wanted : known < USUAL_WORKERS ? known : USUAL_WORKERS;
}

void workers_look(atomic_uint *number, unsigned is) {
  struct timespec begin, now;
  if (processors() < 4) {
    return;
  }
  clock_gettime(CLOCK_MONOTONIC, &begin);
  do {
    for (int i = 0; i < 64 && atomic_load_explicit(number, memory_order_relaxed) == is; i++) {
#if defined(__x86_64__)
      __builtin_ia32_pause();
#endif
    }
    clock_gettime(CLOCK_MONOTONIC, &now);
  } while (atomic_load_explicit(number, memory_order_relaxed) == is &&
           (now.tv_sec - begin.tv_sec) * 1000000000L + now.tv_nsec - begin.tv_nsec < LOOK_NANOSECONDS);
}

static void *work(void *unused) {
  pthread_mutex_lock(&lock);
  for (;;) {
    task *t = first;
    if (t != NULL) {
      first = t->next;
      last = first == NULL ? &first : last;
      atomic_fetch_sub(&posted, 1);
      pthread_mutex_unlock(&lock);
      t->run(t);
      atomic_fetch_add(&looking, 1);
      workers_look(&posted, 0);
      atomic_fetch_sub(&looking, 1);
      pthread_mutex_lock(&lock);
    } else if (ending) {
      break;
    } else {
      idle++;
      pthread_cond_wait(&changed, &lock);
      idle--;
    }
  }
  pthread_mutex_unlock(&lock);
  return unused;
}

// With the lock. Signals are for the program's threads, but for those that a thread brings on itself: Java uses some of them.
static bool start(void) {
  static const int kept[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGSYS};
  sigset_t all, before;
  sigfillset(&all);
  for (size_t i = 0; i < COUNT(kept); i++) {
    sigdelset(&all, kept[i]);
  }
  pthread_sigmask(SIG_SETMASK, &all, &before);
  bool good = pthread_create(&threads[alive], NULL, work, NULL) == 0;
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  alive += good;
  return good;
}

bool workers_post(task *t) {
  pthread_mutex_lock(&lock);
  bool good = !ending && library_is_open(); // nobody joins a thread that starts from the end on
  const int waiting = (int)atomic_load(&posted);
  // A thread that looks around finds the task: it takes the lock before it sleeps.
  const bool found = atomic_load(&looking) > waiting;
  if (good && !found && idle <= waiting && alive < workers_limit() && alive < MOST_WORKERS) {
    good = start() || alive > 0;
  }
  if (good) {
    t->next = NULL;
    *last = t;
    last = &t->next;
    atomic_fetch_add(&posted, 1);
    if (!found) {
      pthread_cond_signal(&changed);
    }
  }
  pthread_mutex_unlock(&lock);
  if (!good && library_is_open()) {
    LOG(LOG_WARN, "no thread could be started");
  }
  return good;
}

void workers_end(void) {
  pthread_mutex_lock(&lock);
  ending = true;
  pthread_cond_broadcast(&changed);
  int count = alive;
  pthread_mutex_unlock(&lock);
  for (int i = 0; i < count; i++) {
    pthread_join(threads[i], NULL);
  }
  pthread_mutex_lock(&lock);
  alive = 0;
  ending = false;
  pthread_mutex_unlock(&lock);
}
