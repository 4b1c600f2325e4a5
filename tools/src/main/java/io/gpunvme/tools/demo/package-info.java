/**
 * The main job as one call: a file goes onto an SSD and comes back through NVMe commands into
 * accelerator memory, where its checksum is compared. The SSD is an embedded one, or somebody's:
 * then what was there is put back, or nothing is written, and what the accelerator got is compared
 * with what the CPU reads.
 *
 * <p>In: what the {@code demo} command does, for other programs and tests to call. Out: printing
 * and progress bars ({@code cli}), and every step of it ({@code device}, {@code transfer}, {@code
 * sample}).
 */
@NullMarked
package io.gpunvme.tools.demo;

import org.jspecify.annotations.NullMarked;
