// The little of JSON that cufile.json needs, with comments.
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "parts.h"

enum { MOST_DEPTH = 16 };

typedef struct parser {
  const char *at, *begin;
  json_visitor *visitor;
  void *data;
  char name[256], value[4096];
  int depth;
  const char *wrong;
} parser;

static bool fail(parser *p, const char *what) {
  static _Thread_local char text[128];
  int line = 1;
  for (const char *c = p->begin; c < p->at; c++) {
    line += *c == '\n';
  }
  snprintf(text, sizeof text, "line %d: %s", line, what);
  p->wrong = text;
  return false;
}

static void skip(parser *p) {
  for (;;) {
    const char *end;
    while (isspace((unsigned char)*p->at)) {
      p->at++;
    }
    if (p->at[0] == '/' && p->at[1] == '/') {
      p->at += strcspn(p->at, "\n");
    } else if (p->at[0] == '/' && p->at[1] == '*' && (end = strstr(p->at + 2, "*/")) != NULL) {
      p->at = end + 2;
    } else {
      return;
    }
  }
}

// A string into p->value.
static bool string(parser *p) {
  size_t used = 0;
  if (*p->at != '"') {
    return fail(p, "a string is expected");
  }
  for (p->at++; *p->at != '"'; p->at++) {
    if (*p->at == '\\') {
      p->at++;
    }
    if (*p->at == 0 || used + 1 == sizeof p->value) {
      return fail(p, "a string does not end, or is too long");
    }
    p->value[used++] = *p->at;
  }
  p->at++;
  p->value[used] = 0;
  return true;
}

static bool value(parser *p, int number);

// What is between the brackets of an object or an array.
static bool items(parser *p, char close) {
  size_t length = strlen(p->name);
  if (++p->depth > MOST_DEPTH) {
    return fail(p, "too deep");
  }
  p->at++;
  skip(p);
  for (int number = 0; *p->at != close; number++) {
    if (close == '}') {
      if (!string(p)) {
        return false;
      }
      const int more = snprintf(p->name + length, sizeof p->name - length, "%s%s", length > 0 ? "." : "", p->value);
      if (more >= (int)(sizeof p->name - length)) {
        return fail(p, "names are too long");
      }
      skip(p);
      if (*p->at != ':') {
        return fail(p, "a colon is expected");
      }
      p->at++;
    }
    if (!value(p, close == '}' ? -1 : number)) {
      return false;
    }
    p->name[length] = 0;
    skip(p);
    if (*p->at == ',') {
      p->at++;
      skip(p);
    } else if (*p->at != close) {
      return fail(p, close == '}' ? "a comma or } is expected" : "a comma or ] is expected");
    }
  }
  p->at++;
  p->depth--;
  return true;
}

static bool value(parser *p, int number) {
  skip(p);
  if (*p->at == '{') {
    return items(p, '}');
  }
  if (*p->at == '[') {
    return items(p, ']');
  }
  if (*p->at == '"') {
    if (!string(p)) {
      return false;
    }
  } else {
    size_t length = strcspn(p->at, " \t\r\n,]}/");
    if (length == 0 || length >= sizeof p->value) {
      return fail(p, "a value is expected");
    }
    memcpy(p->value, p->at, length);
    p->value[length] = 0;
    p->at += length;
  }
  p->visitor(p->data, p->name, number, p->value);
  return true;
}

const char *json_visit(const char *text, json_visitor *visitor, void *data) {
  parser p = {.at = text, .begin = text, .visitor = visitor, .data = data};
  skip(&p);
  if (*p.at != '{') {
    fail(&p, "{ is expected");
    return p.wrong;
  }
  if (value(&p, -1)) {
    skip(&p);
    if (*p.at != 0) {
      fail(&p, "nothing more is expected");
    }
  }
  return p.wrong;
}
