"""Lab 9 rebuilt: its published figures beside a lab's findings, and a replica of it fitted on three of them."""
