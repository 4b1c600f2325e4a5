#include "java.h"

#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shim.h"

#define EXPORTS "io/gpunvme/capi/Exports"
#define GUARD "io/gpunvme/nvme/driver/ShutdownGuard"
#define MAX_JARS 256

// Local references live until the calling thread is detached, which is soon.

static void describe(JNIEnv *env, jthrowable thrown, notes *to) {
  jclass class = (*env)->GetObjectClass(env, thrown);
  jmethodID to_string = (*env)->GetMethodID(env, class, "toString", "()Ljava/lang/String;");
  jstring string = to_string == NULL ? NULL : (*env)->CallObjectMethod(env, thrown, to_string);
  const char *text = string == NULL ? NULL : (*env)->GetStringUTFChars(env, string, NULL);
  (*env)->ExceptionClear(env);
  note(to, "%s%s", to->used == 0 ? "" : "; because of ", text == NULL ? "an exception that cannot be printed" : text);
  if (text != NULL) {
    (*env)->ReleaseStringUTFChars(env, string, text);
  }
}

// The pending exception and its causes.
static int thrown(JNIEnv *env, const char *doing, failure *f) {
  notes text = {0};
  jthrowable at = (*env)->ExceptionOccurred(env);
  (*env)->ExceptionClear(env);
  jclass throwable = (*env)->FindClass(env, "java/lang/Throwable");
  jmethodID cause = throwable == NULL ? NULL : (*env)->GetMethodID(env, throwable, "getCause", "()Ljava/lang/Throwable;");
  (*env)->ExceptionClear(env);
  for (int depth = 0; at != NULL && depth < 6; depth++) {
    describe(env, at, &text);
    at = cause == NULL ? NULL : (*env)->CallObjectMethod(env, at, cause);
    (*env)->ExceptionClear(env);
  }
  const char *hint = strstr(text.text, "IllegalCallerException") == NULL
      ? ""
      : "; this virtual machine was not started by gpunvme: it needs the option --enable-native-access=ALL-UNNAMED";
  return shim_fail(f, GPUNVME_ERROR_JAVA, "%s: %s%s", doing, text.text, hint);
}

// The feature release that this is; 0 if it does not say.
static int release(JNIEnv *env) {
  jclass system = (*env)->FindClass(env, "java/lang/System");
  jmethodID property =
      system == NULL ? NULL : (*env)->GetStaticMethodID(env, system, "getProperty", "(Ljava/lang/String;)Ljava/lang/String;");
  jstring key = property == NULL ? NULL : (*env)->NewStringUTF(env, "java.specification.version");
  jstring value = key == NULL ? NULL : (*env)->CallStaticObjectMethod(env, system, property, key);
  const char *text = value == NULL ? NULL : (*env)->GetStringUTFChars(env, value, NULL);
  int number = text == NULL ? 0 : atoi(text); // "1.8" is 1
  if (text != NULL) {
    (*env)->ReleaseStringUTFChars(env, value, text);
  }
  (*env)->ExceptionClear(env);
  return number;
}

// The URL of a file; NULL with an exception pending.
static jobject url_of(JNIEnv *env, const char *path) {
  jclass string = (*env)->FindClass(env, "java/lang/String");
  jclass file = (*env)->FindClass(env, "java/io/File");
  jclass uri = (*env)->FindClass(env, "java/net/URI");
  jmethodID decode = (*env)->GetMethodID(env, string, "<init>", "([B)V");
  jmethodID new_file = (*env)->GetMethodID(env, file, "<init>", "(Ljava/lang/String;)V");
  jmethodID to_uri = (*env)->GetMethodID(env, file, "toURI", "()Ljava/net/URI;");
  jmethodID to_url = (*env)->GetMethodID(env, uri, "toURL", "()Ljava/net/URL;");
  jsize length = (jsize)strlen(path);
  jbyteArray bytes = (*env)->NewByteArray(env, length);
  if (bytes == NULL) {
    return NULL;
  }
  (*env)->SetByteArrayRegion(env, bytes, 0, length, (const jbyte *)path);
  jobject name = (*env)->NewObject(env, string, decode, bytes);
  jobject its_file = name == NULL ? NULL : (*env)->NewObject(env, file, new_file, name);
  jobject its_uri = its_file == NULL ? NULL : (*env)->CallObjectMethod(env, its_file, to_uri);
  return its_uri == NULL || (*env)->ExceptionCheck(env) ? NULL : (*env)->CallObjectMethod(env, its_uri, to_url);
}

// An array of the URLs of all jars in the folder; NULL with an exception pending.
static jobjectArray urls_of(JNIEnv *env, const char *folder) {
  jobject urls[MAX_JARS];
  jsize count = 0;
  DIR *entries = opendir(folder);
  struct dirent *entry;
  while (entries != NULL && count < MAX_JARS && !(*env)->ExceptionCheck(env) && (entry = readdir(entries)) != NULL) {
    char path[PATH_MAX];
    size_t length = strlen(entry->d_name);
    if (length > 4 && strcmp(entry->d_name + length - 4, ".jar") == 0 &&
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name) < (int)sizeof path) {
      urls[count++] = url_of(env, path);
    }
  }
  if (entries != NULL) {
    closedir(entries);
  }
  jclass url = (*env)->ExceptionCheck(env) ? NULL : (*env)->FindClass(env, "java/net/URL");
  jobjectArray array = url == NULL ? NULL : (*env)->NewObjectArray(env, count, url, NULL);
  for (jsize i = 0; array != NULL && i < count; i++) {
    (*env)->SetObjectArrayElement(env, array, i, urls[i]);
  }
  return array;
}

// Exports of a loader of our own, whose parent is the platform's, so that nothing of the application gets in between.
static int load(JNIEnv *env, jclass *exports, failure *f) {
  static const char doing[] = "loading gpunvme into the virtual machine of this process";
  int version = release(env);
  if (version < SHIM_JAVA) {
    return shim_fail(f, GPUNVME_ERROR_JAVA, "this process has a virtual machine already, of Java %d; gpunvme needs %d or newer", version, SHIM_JAVA);
  }
  char folder[PATH_MAX];
  int code = shim_find_jars(folder, f);
  if (code < 0) {
    return code;
  }
  if ((*env)->EnsureLocalCapacity(env, MAX_JARS * 12) != JNI_OK) {
    return thrown(env, doing, f);
  }
  jobjectArray urls = urls_of(env, folder);
  if (urls == NULL) {
    return thrown(env, doing, f);
  }
  jclass any = (*env)->FindClass(env, "java/lang/ClassLoader");
  jclass ours = (*env)->FindClass(env, "java/net/URLClassLoader");
  jmethodID platform = (*env)->GetStaticMethodID(env, any, "getPlatformClassLoader", "()Ljava/lang/ClassLoader;");
  jmethodID make = (*env)->GetMethodID(env, ours, "<init>", "([Ljava/net/URL;Ljava/lang/ClassLoader;)V");
  jmethodID find = (*env)->GetMethodID(env, ours, "loadClass", "(Ljava/lang/String;)Ljava/lang/Class;");
  jobject parent = (*env)->CallStaticObjectMethod(env, any, platform);
  jobject loader = parent == NULL ? NULL : (*env)->NewObject(env, ours, make, urls, parent);
  jstring name = loader == NULL ? NULL : (*env)->NewStringUTF(env, "io.gpunvme.capi.Exports");
  *exports = name == NULL ? NULL : (*env)->CallObjectMethod(env, loader, find, name);
  if (*exports == NULL || (*env)->ExceptionCheck(env)) {
    return thrown(env, doing, f);
  }
  // Its classes stay, whatever becomes of this thread's references.
  (*env)->NewGlobalRef(env, *exports);
  return GPUNVME_OK;
}

int java_fill(JNIEnv *env, table *to, failure *f) {
  // Ours on the module path of our own virtual machine, of another copy of this library's, or of an application that
  // uses gpunvme itself. A table of another version is refused by fill.
  jclass exports = (*env)->FindClass(env, EXPORTS);
  if (exports == NULL) {
    (*env)->ExceptionClear(env);
    int code = load(env, &exports, f);
    if (code < 0) {
      return code;
    }
  }
  jmethodID fill = (*env)->GetStaticMethodID(env, exports, "fill", "(JI)V");
  if (fill != NULL) {
    (*env)->CallStaticVoidMethod(env, exports, fill, (jlong)(intptr_t)to, (jint)GPUNVME_TABLE_VERSION);
  }
  return (*env)->ExceptionCheck(env) ? thrown(env, "starting gpunvme in Java", f) : GPUNVME_OK;
}

void java_end(JNIEnv *env) {
  jclass guard = (*env)->FindClass(env, GUARD);
  jmethodID end = guard == NULL ? NULL : (*env)->GetStaticMethodID(env, guard, "end", "()V");
  if (end != NULL) {
    (*env)->CallStaticVoidMethod(env, guard, end);
  }
  (*env)->ExceptionClear(env);
}
