/**
 * The path {@code cufile}: NVIDIA's cuFile moves the bytes, directly between SSD and GPU where it
 * can, through host memory where it cannot (its compatibility mode).
 *
 * <p>In: how a transfer is cut into cuFile's calls, and whether cuFile can work for a file at all,
 * found out without opening the library. Out: the binding ({@code io.gpunvme.cuda.cufile}).
 */
@NullMarked
package io.gpunvme.storage.path.cufile;

import org.jspecify.annotations.NullMarked;
