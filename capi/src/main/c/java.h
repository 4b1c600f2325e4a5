// What is said to a virtual machine once there is one.
#ifndef GPUNVME_JAVA_H
#define GPUNVME_JAVA_H

#include <jni.h>

#include "table.h"

// Has io.gpunvme.capi.Exports fill the table: the class that the application's loader has, else the one in our jars.
int java_fill(JNIEnv *env, table *to, failure *f);

// Has all controllers shut down in order, and none opened any more. No function of the table: to make one takes
// milliseconds, which programs without controllers would wait for, too.
void java_end(JNIEnv *env);

#endif
