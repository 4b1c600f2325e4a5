/**
 * Files read into pinned host memory and copied from there to an accelerator, both at the same
 * time; and the other way round. In here: the path, how it cuts requests into loads, the ways to do
 * I/O and copies in the background, and the pinned memory they meet in. Not in here: the choice
 * between this path and others.
 */
@NullMarked
package io.gpunvme.storage.path.pinned;

import org.jspecify.annotations.NullMarked;
