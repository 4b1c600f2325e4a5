/** A file as extents of the device that holds it: the way to files where no kernel mounts them. */
@org.jspecify.annotations.NullMarked
package io.gpunvme.core.path.extents;
