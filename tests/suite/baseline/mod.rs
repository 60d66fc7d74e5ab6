//! Which baseline a run is compared with, from real repositories.

mod branch;
mod choice;
mod refused;
mod scene;
