/**
 * Which I/Os to make for many ranges of a source: aligned, coalesced, cut at the longest transfer,
 * spread over stripe members, before any of them is made. Pure functions of their input: no I/O, no
 * clock, no threads, so a plan can be printed and tested without a device. Carrying a plan out is
 * not done here. {@code Planner} is the way in.
 */
@NullMarked
package io.gpunvme.storage.plan;

import org.jspecify.annotations.NullMarked;
