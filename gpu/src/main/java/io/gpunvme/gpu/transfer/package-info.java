/**
 * Moving logical blocks between a namespace and accelerator memory.
 *
 * <p>In: the plan (which blocks go where, split into commands before any I/O) and the initiators
 * that carry it out. Out: opening devices ({@code device}), file formats, and single commands
 * ({@code nvme.driver}).
 */
@NullMarked
package io.gpunvme.gpu.transfer;

import org.jspecify.annotations.NullMarked;
