/** Files and partitions by way of a path of the device that holds them. */
@org.jspecify.annotations.NullMarked
package io.gpunvme.storage.path.extents;
