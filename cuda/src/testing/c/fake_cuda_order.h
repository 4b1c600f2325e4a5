// The order of the stand-in's streams and events. A stream's work is done at once, unless it waits for a
// word or an event, or behind a kernel: then a thread does it, and all that is put behind it, when that has come.
//
// FAKE_IN_ORDER  1: streams wait; 0: they wait for nothing
#include <unistd.h>
#include "fake_cuda_kernels.h"

#ifndef FAKE_IN_ORDER
#define FAKE_IN_ORDER 0
#endif

enum { NOT_READY = 600 };
enum { COPY, FILL, WAIT_WORD, WAIT_EVENT, RECORD, KERNEL, CALL };

struct event {
  long recorded, done; // turns
  int users;           // its handle, and work that is still to be done
};

struct work {
  int kind;
  void *to;
  const void *from;
  size_t bytes;
  int value;
  struct event *event;
  struct run *run;
  void (*call)(void *); // with "to"
  long turn;
  struct work *next;
};

struct stream {
  struct work *first, **last;
  int working, dead;
};

static int pending; // Work of all streams that is still to be done.

static struct stream *new_stream(void) {
  struct stream *s = calloc(1, sizeof *s);
  s->last = &s->first;
  return s;
}

// What a handle is of: 0 and 1 are CUDA's names for the default stream, 2 is the thread's own. Under the lock.
static struct stream *stream_of(CUstream handle) {
  enum { MOST_THREADS = 64 };
  static struct stream *named[1 + MOST_THREADS];
  static int threads;
  static __thread int own;
  if ((uintptr_t)handle > PER_THREAD_STREAM) {
    return (struct stream *)handle;
  }
  if ((uintptr_t)handle == PER_THREAD_STREAM && own == 0 && (own = ++threads) > MOST_THREADS) {
    abort();
  }
  struct stream **s = &named[(uintptr_t)handle == PER_THREAD_STREAM ? own : 0];
  *s = *s != NULL ? *s : new_stream();
  return *s;
}

static struct event *new_event(void) {
  struct event *e = calloc(1, sizeof *e);
  e->users = 1;
  return e;
}

static void leave_event(struct event *e) {
  if (e != NULL && --e->users == 0) {
    free(e);
  }
}

static int is_due(const struct work *w) {
  switch (w->kind) {
    case WAIT_WORD: return __atomic_load_n((int *)w->to, __ATOMIC_ACQUIRE) - w->value >= 0;
    case WAIT_EVENT: return w->event->done >= w->turn;
    case KERNEL: return is_over(w->run);
    default: return 1;
  }
}

static void perform(const struct work *w) {
  switch (w->kind) {
    case COPY: memcpy(w->to, w->from, w->bytes); break;
    case FILL: memset(w->to, w->value, w->bytes); break;
    case RECORD: w->event->done = w->turn; break;
    case KERNEL: end_run(w->run); break;
    default: break;
  }
  leave_event(w->event);
}

static void *work_off(void *argument) {
  struct stream *s = argument;
  pthread_mutex_lock(&lock);
  while (s->first != NULL) {
    struct work *w = s->first;
    if (!is_due(w)) {
      pthread_mutex_unlock(&lock);
      usleep(50);
      pthread_mutex_lock(&lock);
      continue;
    }
    if (w->kind == CALL) {
      // Functions of the program may take as long as they like, and look at what others do.
      pthread_mutex_unlock(&lock);
      w->call(w->to);
      pthread_mutex_lock(&lock);
    }
    perform(w);
    s->first = w->next;
    free(w);
    pending--;
    pthread_cond_broadcast(&changed);
  }
  s->last = &s->first;
  s->working = 0;
  if (s->dead) {
    free(s);
  }
  pthread_mutex_unlock(&lock);
  return NULL;
}

static int put(CUstream stream, struct work w) {
  pthread_mutex_lock(&lock);
  struct stream *s = stream_of(stream);
  if (w.event != NULL) {
    w.event->users++;
    w.turn = w.kind == RECORD ? ++w.event->recorded : w.event->recorded;
  }
  if (w.kind != CALL && (!FAKE_IN_ORDER || (!s->working && is_due(&w)))) {
    perform(&w);
  } else {
    struct work *kept = malloc(sizeof *kept);
    *kept = w;
    *s->last = kept;
    s->last = &kept->next;
    pending++;
    pthread_t thread;
    if (!s->working && (pthread_create(&thread, NULL, work_off, s) != 0 || pthread_detach(thread) != 0)) {
      abort();
    }
    s->working = 1;
  }
  pthread_mutex_unlock(&lock);
  return 0;
}

static int stream_state(CUstream stream, int waits) {
  pthread_mutex_lock(&lock);
  struct stream *s = stream_of(stream);
  while (waits && s->first != NULL) {
    pthread_cond_wait(&changed, &lock);
  }
  int busy = s->first != NULL;
  pthread_mutex_unlock(&lock);
  return busy ? NOT_READY : 0;
}

static int event_state(CUevent event, int waits) {
  struct event *e = (struct event *)event;
  pthread_mutex_lock(&lock);
  long turn = e->recorded;
  while (waits && e->done < turn) {
    pthread_cond_wait(&changed, &lock);
  }
  int busy = e->done < turn;
  pthread_mutex_unlock(&lock);
  return busy ? NOT_READY : 0;
}

// What it has to do is done nevertheless.
static void end_stream(void *stream) {
  struct stream *s = stream;
  pthread_mutex_lock(&lock);
  s->dead = 1;
  if (!s->working) {
    free(s);
  }
  pthread_mutex_unlock(&lock);
}

static void end_event(void *event) {
  pthread_mutex_lock(&lock);
  leave_event(event);
  pthread_mutex_unlock(&lock);
}

// Returns when no stream has work to do; "alone" lets no other call in meanwhile, as a driver does that takes or
// frees memory, or loads code.
static void settle(int alone) {
  pthread_mutex_lock(&lock);
  settling += alone;
  while (pending > 0) {
    pthread_cond_wait(&changed, &lock);
  }
  settling -= alone;
  pthread_cond_broadcast(&changed);
  pthread_mutex_unlock(&lock);
}
