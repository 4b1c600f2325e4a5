// Lanes: a piece of pinned memory and a stream that copies from and to it. A transfer takes one that is free, or makes one; so there are
// as many as there ever were transfers at a time.
#include <stdlib.h>

#include "parts.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static lane *spare; // guarded by lock

static lane *find(cuda_context context) {
  pthread_mutex_lock(&lock);
  lane **place = &spare;
  while (*place != NULL && (*place)->context != context) {
    place = &(*place)->next;
  }
  lane *found = *place;
  if (found != NULL) {
    *place = found->next;
  }
  pthread_mutex_unlock(&lock);
  return found;
}

static CUresult make(cuda_context context, lane **made) {
  enum { OUT_OF_MEMORY = 2 };
  lane *l = calloc(1, sizeof *l);
  if (l == NULL) {
    return OUT_OF_MEMORY;
  }
  l->context = context;
  CUresult code = cuda_pinned((void **)&l->pinned, LANE_BYTES + MOST_COPIES * sizeof *l->copies);
  if (code == 0) {
    code = cuda_stream(&l->stream);
    if (code != 0) {
      cuda_unpin(l->pinned);
    }
  }
  if (code != 0) {
    free(l);
    return code;
  }
  l->copies = (copy *)(l->pinned + LANE_BYTES);
  *made = l;
  return 0;
}

CUresult lane_take(cuda_context context, lane **taken, caller *before) {
  CUresult code = cuda_enter(context, before);
  if (code != 0) {
    return code;
  }
  *taken = find(context);
  if (*taken == NULL) {
    code = make(context, taken);
    if (code != 0) {
      cuda_leave(*before);
    }
  }
  return code;
}

void lane_give(lane *l, caller before) {
  cuda_leave(before);
  pthread_mutex_lock(&lock);
  l->next = spare;
  spare = l;
  pthread_mutex_unlock(&lock);
}

void lanes_drop(void) {
  pthread_mutex_lock(&lock);
  lane *l = spare;
  spare = NULL;
  pthread_mutex_unlock(&lock);
  while (l != NULL) {
    lane *next = l->next;
    caller before;
    // A program may have ended its context, and all that was in it.
    if (cuda_enter(l->context, &before) == 0) {
      cuda_stream_end(l->stream);
      cuda_unpin(l->pinned);
      cuda_leave(before);
    }
    free(l);
    l = next;
  }
}
