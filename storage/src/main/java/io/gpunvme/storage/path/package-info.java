/**
 * The paths of bytes between a source and an accelerator's memory: their common parts, and one
 * package for each path that reads files. A path moves ranges, reports its counts, and estimates
 * its rate. It knows nothing of the other paths. {@code io.gpunvme.storage} chooses the path.
 */
@NullMarked
package io.gpunvme.storage.path;

import org.jspecify.annotations.NullMarked;
