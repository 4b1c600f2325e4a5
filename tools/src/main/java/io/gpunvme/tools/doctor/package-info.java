/**
 * The obstacles on this machine to each way of moving data, and their fixes.
 *
 * <p>In: findings about a {@code tools.machine.Machine} and the GPUs that CUDA lists, each with its
 * cause, its effect and the command that changes it; what can be done at once; and trying, on an
 * open device, whether a GPU can drive it. Out: reading the machine ({@code machine}), moving data
 * for its own sake ({@code transfer}).
 */
@NullMarked
package io.gpunvme.tools.doctor;

import org.jspecify.annotations.NullMarked;
