"""What follows when a key is pressed or a pane asks for something? One controller a question; the app holds them."""
