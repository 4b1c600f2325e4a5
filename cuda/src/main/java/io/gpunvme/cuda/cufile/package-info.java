/**
 * NVIDIA's cuFile (GPUDirect Storage) over {@code java.lang.foreign}: files read into, and written
 * from, GPU memory.
 *
 * <p>In here: bindings that say what the cuFile API reference says, owners of what they open, and
 * their errors. The library is opened at run time by {@link io.gpunvme.cuda.cufile.CuFile#load} and
 * by nothing else; functions that an older one lacks are missed only when they are called. Not in
 * here: how a transfer is cut into calls, and whether cuFile is a good way for it.
 *
 * <p>What is made through a {@link io.gpunvme.cuda.cufile.CuFileDriver} ends with it, and that with
 * its CUDA context, in the order that cuFile needs: streams, buffers and files before the driver,
 * buffers before the memory is freed, a file's descriptor after its handle.
 */
@NullMarked
package io.gpunvme.cuda.cufile;

import org.jspecify.annotations.NullMarked;
