# Slack: who is written to, added, invited or removed is named by the user or listed by the workspace.

reading(/get_channels).
reading(/read_channel_messages).
reading(/read_inbox).
reading(/get_users_in_channel).

# A page is read when the user wrote its address, or asked for links out of messages.
means("website", /get_webpage).
means("websites", /get_webpage).
means("webpage", /get_webpage).
means("page", /get_webpage).
means("link", /get_webpage).
means("links", /get_webpage).
means("article", /get_webpage).
means("articles", /get_webpage).
means("url", /get_webpage).
means("blog", /get_webpage).
means("www", /get_webpage).
means("restaurant", /get_webpage).
means("post", /post_webpage).
means("publish", /post_webpage).

means("send", /send_direct_message).
means("message", /send_direct_message).
means("write", /send_direct_message).
means("tell", /send_direct_message).
means("reply", /send_direct_message).
means("dm", /send_direct_message).
means("say", /send_direct_message).
means("greet", /send_direct_message).
means("channel", /send_channel_message).
means("post", /send_channel_message).
means("announce", /send_channel_message).

means("invite", /invite_user_to_slack).
means("add", /add_user_to_channel).
means("invite", /add_user_to_channel).
means("remove", /remove_user_from_slack).
means("kick", /remove_user_from_slack).
means("delete", /remove_user_from_slack).

guarded(/get_webpage, /url).
guarded(/post_webpage, /url).
guarded(/send_direct_message, /recipient).
guarded(/send_channel_message, /channel).
guarded(/invite_user_to_slack, /user).
guarded(/invite_user_to_slack, /user_email).
guarded(/add_user_to_channel, /user).
guarded(/add_user_to_channel, /channel).
guarded(/remove_user_from_slack, /user).

flows(/get_users_in_channel, "result", /send_direct_message, /recipient).
flows(/get_users_in_channel, "result", /add_user_to_channel, /user).
flows(/get_channels, "result", /add_user_to_channel, /channel).
flows(/get_channels, "result", /send_channel_message, /channel).
flows(/read_channel_messages, "sender", /send_direct_message, /recipient).
flows(/get_users_in_channel, "result", /remove_user_from_slack, /user).

text_flows(/read_channel_messages, /get_webpage, /url).
text_flows(/read_inbox, /get_webpage, /url).
text_flows(/get_webpage, /invite_user_to_slack, /user_email).
text_flows(/read_channel_messages, /invite_user_to_slack, /user_email).
text_flows(/read_inbox, /invite_user_to_slack, /user_email).

speaking(/send_direct_message, /body).
speaking(/send_channel_message, /body).
