/** The path {@code mmap}: the file mapped and copied, the baseline of the others. */
@NullMarked
package io.gpunvme.storage.path.mmap;

import org.jspecify.annotations.NullMarked;
