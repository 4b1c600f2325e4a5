/**
 * POSIX over {@code java.lang.foreign}: the few system calls everyone above needs, and memory that
 * comes from them.
 *
 * <p>In here: bindings that say what the man page says ({@link io.gpunvme.ffi.Posix}), their errors
 * ({@link io.gpunvme.ffi.PosixException}), owners of mapped and pinned memory and of descriptors,
 * and unchecked memory for innermost loops ({@link io.gpunvme.ffi.AddressSpace}). Not in here:
 * anything that knows NVMe, PCI or an accelerator, and any policy. Every restricted method of
 * {@code java.lang.foreign} is called in this package or in {@code io.gpunvme.cuda} and nowhere
 * above them, so {@code --enable-native-access=io.gpunvme.ffi,io.gpunvme.cuda} is all the product
 * needs.
 */
@NullMarked
package io.gpunvme.ffi;

import org.jspecify.annotations.NullMarked;
