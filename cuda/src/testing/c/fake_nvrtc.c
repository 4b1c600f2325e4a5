// A stand-in for libnvrtc.so: "compiling" writes down what it was given, and fails for a program
// that contains #error.
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TEXT = 4096, COMPILATION_ERROR = 6 };

struct program {
  char ptx[TEXT], log[TEXT];
};

static int live;

int fake_live(void) { return live; }

int nvrtcVersion(int *major, int *minor) {
  *major = 12;
  *minor = 9;
  return 0;
}

const char *nvrtcGetErrorString(int code) {
  return code == COMPILATION_ERROR ? "NVRTC_ERROR_COMPILATION" : "NVRTC_ERROR_INVALID_INPUT";
}

int nvrtcCreateProgram(struct program **result, const char *text, const char *name, int headers,
    const char *const *texts, const char *const *names) {
  if (name[0] == 0) {
    return 3;
  }
  struct program *p = calloc(1, sizeof *p);
  int length = snprintf(p->ptx, TEXT, "%s[%s]", name, text);
  for (int i = 0; i < headers; i++) {
    length += snprintf(p->ptx + length, TEXT - (size_t)length, " %s[%s]", names[i], texts[i]);
  }
  live++;
  *result = p;
  return 0;
}

int nvrtcDestroyProgram(struct program **p) {
  live--;
  free(*p);
  *p = NULL;
  return 0;
}

int nvrtcCompileProgram(struct program *p, int count, const char *const *options) {
  size_t length = strlen(p->ptx);
  for (int i = 0; i < count; i++) {
    length += (size_t)snprintf(p->ptx + length, TEXT - length, " %s", options[i]);
  }
  if (strstr(p->ptx, "#error") != NULL) {
    snprintf(p->log, TEXT, "kernel.cu(1): error: as asked\n");
    return COMPILATION_ERROR;
  }
  snprintf(p->log, TEXT, "a warning\n");
  return 0;
}

int nvrtcGetPTXSize(struct program *p, size_t *size) {
  *size = strlen(p->ptx) + 1;
  return 0;
}

int nvrtcGetPTX(struct program *p, char *ptx) {
  strcpy(ptx, p->ptx);
  return 0;
}

int nvrtcGetProgramLogSize(struct program *p, size_t *size) {
  *size = strlen(p->log) + 1;
  return 0;
}

int nvrtcGetProgramLog(struct program *p, char *log) {
  strcpy(log, p->log);
  return 0;
}
