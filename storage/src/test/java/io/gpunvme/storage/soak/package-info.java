/**
 * Many threads use many storages while hosts, devices, servers and other threads fail them: hours
 * of it, if that is asked for.
 */
@org.jspecify.annotations.NullMarked
package io.gpunvme.storage.soak;
